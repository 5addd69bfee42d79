/* Depthwise convolution at one instruction-set level (gemm.h): each channel's sum is one chain over its taps, however pixels and channels are
   cut into blocks. */
#include "kernels/gemm.h"

#include <stddef.h>

/* The same instructions as AVX-512: that level's table serves. */
#if !defined(__AVX512VNNI__)

#include "kernels/isa/ends.h"

#define PIXELS (WORTH_CODE ? 8 : 4) /* at once, and the widest row of taps that slides */
#define SLIDE 5
#define CHAINS 4 /* vectors of one pixel */
static __attribute__((noinline)) void end_late(const tn_depthwise_row *d, int64_t g, int64_t p, int pixels,
                                               int vectors) {
    float *out[PIXELS];
    for (int i = 0; i < pixels; i++)
        out[i] = d->out + (p + i) * d->next_out;
    for (int v = 0; v < vectors; v++)
        end_rows(d->end, pixels, 1, out, NULL, g + v * WIDTH);
}

/* `pixels` pixels from p on, `vectors` vectors of channels from g on. */
INLINE void depthwise_block(const tn_depthwise_row *d, int64_t g, int64_t p, const int pixels, const int vectors) {
    vec sum[PIXELS][CHAINS];
    EACH (i, pixels)
        EACH (v, vectors)
            sum[i][v] = (vec){0};
    const int64_t taps = d->taps, next = d->next_in, stride = d->stride;
    const float *const *tap = d->a, *w = d->w + g;
    for (int64_t t = 0; t < taps; t++, w += stride) {
        if (!tap[t])
            continue;
        const float *a = tap[t] + p * next + g;
        EACH (v, vectors) {
            vec x = load(w + v * WIDTH);
            EACH (i, pixels)
                sum[i][v] = madd(load(a + i * next + v * WIDTH), x, sum[i][v]);
        }
    }
    float *out = d->out + p * d->next_out + g;
    const int64_t next_out = d->next_out;
    EACH (v, vectors) {
        vec ended[PIXELS][VECTORS];
        EACH (i, pixels)
            ended[i][0] = sum[i][v];
        if (d->end && !d->end->late)
            end_sums(pixels, 1, ended, d->end, NULL, g + v * WIDTH);
        EACH (i, pixels)
            store(out + i * next_out + v * WIDTH, ended[i][0]);
    }
    if (d->end && d->end->late)
        end_late(d, g, p, pixels, vectors);
}

/* The same of one vector, where `width` taps in a row read one pixel after the other: what is read is read once for all of a row's. */
INLINE void depthwise_slide(const tn_depthwise_row *d, int64_t g, int64_t p, const int pixels, const int width) {
    vec sum[PIXELS][VECTORS];
    EACH (i, pixels)
        sum[i][0] = (vec){0};
    const int64_t taps = d->taps, next = d->next_in, stride = d->stride;
    const float *const *tap = d->a, *w = d->w + g;
    for (int64_t t = 0; t < taps; t += width, w += width * stride) {
        if (!tap[t])
            continue;
        const float *a = tap[t] + p * next + g;
        vec x[SLIDE];
        EACH (k, width)
            x[k] = load(w + k * stride);
        EACH (i, pixels + width - 1) {
            vec y = load(a + i * next);
            EACH (k, width) /* the output that reads this pixel by its last tap has gone through the others */
                if (i - k >= 0 && i - k < pixels)
                    sum[i - k][0] = madd(y, x[k], sum[i - k][0]);
        }
    }
    if (d->end && !d->end->late)
        end_sums(pixels, 1, sum, d->end, NULL, g);
    float *out = d->out + p * d->next_out + g;
    const int64_t next_out = d->next_out;
    EACH (i, pixels)
        store(out + i * next_out, sum[i][0]);
    if (d->end && d->end->late)
        end_late(d, g, p, pixels, 1);
}

/* Fewer channels than a vector has. */
static void depthwise_few(const tn_depthwise_row *d, int64_t p) {
    for (int64_t g = 0; g < d->groups; g++) {
        vec sum[1][VECTORS] = {0};
        for (int64_t t = 0; t < d->taps; t++)
            if (d->a[t])
                sum[0][0] = madd(splat(d->a[t][p * d->next_in + g]), splat(d->w[t * d->stride + g]), sum[0][0]);
        if (d->end) {
            float x[WIDTH] = {0}, *to = x;
            tn_finish_end end = *d->end;
            float sub[WIDTH] = {end.sub ? end.sub[g] : 0}, mul[WIDTH] = {end.mul ? end.mul[g] : 1},
                  add[WIDTH] = {end.add ? end.add[g] : -0.0f};
            end.sub = sub;
            end.mul = mul;
            end.add = add;
            x[0] = sum[0][0][0];
            end_rows(&end, 1, 1, &to, NULL, 0);
            sum[0][0][0] = x[0];
        }
        d->out[p * d->next_out + g] = sum[0][0][0];
    }
}

/* Channels pass inside: what is read lies side by side. The last ones once more among others: each channel has its own sum. */
#define PIXELS_BY(block, n, last)                      \
    for (; p + (n) <= d->pixels; p += (n))             \
        for (int64_t g = 0; g < d->groups; g += WIDTH) \
            block(d, g + WIDTH <= d->groups ? g : d->groups - WIDTH, p, n, last);

static void depthwise(const tn_depthwise_row *d) {
    int64_t p = 0;
    if (d->groups < WIDTH) {
        for (; p < d->pixels; p++)
            depthwise_few(d, p);
        return;
    }
    if (WORTH_CODE && d->slide == 3) {
        PIXELS_BY(depthwise_slide, PIXELS, 3)
        PIXELS_BY(depthwise_slide, 4, 3)
    } else if (WORTH_CODE && d->slide == 5)
        PIXELS_BY(depthwise_slide, PIXELS, SLIDE)
    PIXELS_BY(depthwise_block, PIXELS, 1)
    PIXELS_BY(depthwise_block, 4, 1)
    PIXELS_BY(depthwise_block, 2, 1)
    for (; p < d->pixels; p++) { /* sums of one vector would wait for each other */
        int64_t g = 0;
        for (; g + CHAINS * WIDTH <= d->groups; g += CHAINS * WIDTH)
            depthwise_block(d, g, p, 1, CHAINS);
        for (; g < d->groups; g += WIDTH)
            depthwise_block(d, g + WIDTH <= d->groups ? g : d->groups - WIDTH, p, 1, 1);
    }
}

static void depthwise_line(const tn_depthwise_line *d) {
    for (int64_t i = 0; i < d->n; i++)
        d->out[i] = 0;
    for (int64_t t = 0; t < d->taps; t++) {
        const float *a = d->a[t];
        int64_t i = d->low[t], end = d->high[t];
        vec w = splat(d->w[t * d->w_stride]);
        for (; d->step == 1 && i + WIDTH <= end; i += WIDTH)
            store(d->out + i, madd(load(a + i), w, load(d->out + i)));
        for (; i < end; i++)
            d->out[i] = madd(splat(a[i * d->step]), w, splat(d->out[i]))[0];
    }
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
const tn_depthwise_level PASTE(tn_depthwise_, TN_ISA) = {.row = depthwise, .line = depthwise_line};

#endif
