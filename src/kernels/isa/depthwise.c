/* Depthwise convolution at one instruction-set level (gemm.h): each channel's sum is one chain over its taps, however pixels and channels are
   cut into blocks. */
#include "kernels/gemm.h"

#include <stddef.h>

/* The same instructions as AVX-512: that level's table serves. */
#if !defined(__AVX512VNNI__)

#include "kernels/isa/ends.h"

#define PIXELS (WORTH_CODE ? 8 : 4) /* at once */
#define SLIDING 7                   /* where they slide: maps are 7, 14, 28, ... pixels wide */
#define SLIDE 5                     /* the widest row of taps that slides */
#define CHAINS 4                    /* vectors of one pixel */
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

/* The same of one vector, where `width` taps are a row of the window: what is read is read once for all of them. */
INLINE void depthwise_slide(const tn_depthwise_row *d, int64_t g, int64_t p, const int pixels, const int width,
                            const int step) {
    vec sum[PIXELS][VECTORS];
    EACH (i, pixels)
        sum[i][0] = (vec){0};
    const int64_t taps = d->taps, unit = d->unit, stride = d->stride, low = d->low - p * step,
                  high = d->high - p * step;
    const float *const *tap = d->a, *w = d->w + g;
    for (int64_t t = 0; t < taps; t += width, w += width * stride) {
        if (!tap[t])
            continue;
        const float *a = tap[t] + p * step * unit + g;
        vec x[SLIDE];
        EACH (k, width)
            x[k] = load(w + k * stride);
        EACH (q, (pixels - 1) * step + width) {
            if ((q >= width - 1 || q >= low) && (q <= (pixels - 1) * step || q < high)) {
                const vec y = load(a);
                EACH (k, width) /* the output that reads this position by its last tap has gone through the others */
                    if (q >= k && (q - k) % step == 0 && (q - k) / step < pixels)
                        sum[(q - k) / step][0] = madd(y, x[k], sum[(q - k) / step][0]);
            }
            a += unit;
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
#define CHANNELS_BY(block, p, n, ...)              \
    for (int64_t g = 0; g < d->groups; g += WIDTH) \
        block(d, g + WIDTH <= d->groups ? g : d->groups - WIDTH, p, n, __VA_ARGS__);

/* All pixels, `n` at once; the last ones, too, once more among others. */
INLINE void slide_all(const tn_depthwise_row *d, const int n, const int width, const int step) {
    for (int64_t p = 0; p < d->pixels; p += n)
        CHANNELS_BY(depthwise_slide, p + n <= d->pixels ? p : d->pixels - n, n, width, step)
}

static void depthwise(const tn_depthwise_row *d) {
    int64_t p = 0;
    if (d->groups < WIDTH) {
        for (; p < d->pixels; p++)
            depthwise_few(d, p);
        return;
    }
    if (WORTH_CODE && d->slide) {
        if (d->slide > 3)
            slide_all(d, SLIDING, SLIDE, 1);
        else if (d->step > 1)
            slide_all(d, SLIDING, 3, 2);
        else if (d->pixels % PIXELS == 0 || d->pixels > 2 * SLIDING)
            slide_all(d, PIXELS, 3, 1); /* as many chains as multiply-adds want */
        else
            slide_all(d, SLIDING, 3, 1);
        return;
    }
    for (; p + PIXELS <= d->pixels; p += PIXELS)
        CHANNELS_BY(depthwise_block, p, PIXELS, 1)
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
const tn_depthwise_level PASTE(tn_depthwise_, TN_ISA) = {
    .slides = WORTH_CODE ? WIDTH : 0, .sliding = SLIDING, .row = depthwise, .line = depthwise_line};

#endif
