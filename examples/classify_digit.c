/* Loads a network from an ONNX file, runs it on a picture and prints what it sees, how long that took and the memory it used.

       classify_digit [MODEL.onnx [PICTURE.pgm]] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tenon/tenon.h>

#define SIDE 28
#define CLASSES 10
#define RUNS 100

static double seconds(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A binary PGM of 28 x 28 grey pixels, as floats in 0...255. */
static bool read_picture(const char *path, float pixels[SIDE * SIDE]) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: cannot open\n", path);
        return false;
    }
    int width, height, most, pixel = 0;
    bool ok = fscanf(file, "P5 %d %d %d", &width, &height, &most) == 3 && width == SIDE && height == SIDE &&
              most == 255 && fgetc(file) != EOF;
    for (int i = 0; i < SIDE * SIDE && ok; i++) {
        ok = (pixel = fgetc(file)) != EOF;
        pixels[i] = (float)pixel;
    }
    fclose(file);
    if (!ok)
        fprintf(stderr, "%s: not a PGM file (P5) of %d x %d pixels\n", path, SIDE, SIDE);
    return ok;
}

static void show(const float pixels[SIDE * SIDE]) {
    static const char shades[] = " .:-=+*#%@";
    for (int y = 0; y < SIDE; y += 2) {
        for (int x = 0; x < SIDE; x++)
            putchar(shades[(int)((pixels[y * SIDE + x] + pixels[(y + 1) * SIDE + x]) / 2 * 9 / 255)]);
        putchar('\n');
    }
}

/* Runs once: scores for the ten digits. */
static tn_status classify(tn_session *session, const tn_model *model, tn_tensor *picture, float scores[CLASSES]) {
    tn_tensor *y = NULL;
    tn_status status = tn_session_run(session, 1, (const tn_binding[]){{tn_model_input_name(model, 0), picture, NULL}},
                                      1, (const tn_output[]){{tn_model_output_name(model, 0), &y, NULL}});
    if (status == TN_OK && tn_tensor_count(y) != CLASSES)
        status = TN_ERR_INPUT;
    for (int i = 0; i < CLASSES && status == TN_OK; i++)
        scores[i] = (float)tn_tensor_get_f64(y, i);
    tn_tensor_destroy(y);
    return status;
}

int main(int argc, char **argv) {
    const char *file = argc > 1 ? argv[1] : "examples/data/mnist-cnn.onnx";
    float pixels[SIDE * SIDE], scores[CLASSES];
    if (!read_picture(argc > 2 ? argv[2] : "examples/data/seven.pgm", pixels))
        return 1;
    show(pixels);

    double start = seconds();
    tn_model *model = tn_model_load(file, NULL);
    tn_session *session = model ? tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1)) : NULL;
    double loaded = seconds();
    tn_tensor *picture = tn_tensor_wrap(TN_F32, 4, (const int64_t[]){1, 1, SIDE, SIDE}, pixels);
    tn_status status = session ? classify(session, model, picture, scores) : tn_error_status();
    double first = seconds();
    for (int i = 0; i < RUNS && status == TN_OK; i++)
        status = classify(session, model, picture, scores);
    double done = seconds();

    tn_session_report report = {0};
    if (status == TN_OK)
        status = tn_session_describe(session, &report);
    if (status == TN_OK) {
        bool shown[CLASSES] = {false};
        for (int place = 1; place <= 3; place++) {
            int best = -1;
            for (int i = 0; i < CLASSES; i++)
                if (!shown[i] && (best < 0 || scores[i] > scores[best]))
                    best = i;
            shown[best] = true;
            printf("%d. digit %d   score %.0f\n", place, best, (double)scores[best]);
        }
        printf("load and compile %.2f ms, first run %.3f ms, then %.3f ms a run\n", 1e3 * (loaded - start),
               1e3 * (first - loaded), 1e3 * (done - first) / RUNS);
        printf("%llu kB of weights, %llu kB for a run, %llu kB at most in all\n",
               (unsigned long long)report.weight_bytes / 1000, (unsigned long long)report.arena_bytes / 1000,
               (unsigned long long)tn_heap_peak(NULL) / 1000);
    } else
        fprintf(stderr, "%s\n", *tn_error_message() ? tn_error_message() : "this model does not give ten scores");
    tn_tensor_destroy(picture);
    tn_session_destroy(session);
    tn_model_destroy(model);
    return status == TN_OK ? 0 : 1;
}
