/* Rules about data, which only a run can tell: broken ones are refused as bad input in the operator's words, with the element and its value,
   on every path, whatever the file says of the shapes, and also after the model was optimised and written back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <tenon/passes.h>
#include <unistd.h>

#include "support/one_node.h"
#include "support/paths.h"

enum { MOST = 8 };

/* A tensor: integers, also of float inputs. `shape` NULL: absent; no `data`: zeros. */
typedef struct given {
    int dtype;
    const char *shape;
    int64_t data[MOST];
} given;

typedef struct rule {
    const char *op, *inputs, *outputs;
    int opset;
    given in[5];
    struct {
        const char *name;
        int64_t value;
        const char *text;
    } attrs[3];
    const char *says;
} rule;

#define ZEROS(type, sizes) \
    { .dtype = (type), .shape = (sizes) }
#define OF(type, sizes, ...)                                       \
    {                                                              \
        .dtype = (type), .shape = (sizes), .data = { __VA_ARGS__ } \
    }
#define INT(n, v) \
    { .name = (n), .value = (v) }
#define TEXT(n, t) \
    { .name = (n), .text = (t) }
static const rule rules[] = {
    {"ReverseSequence",
     "a,b",
     "y",
     10,
     {ZEROS(TN_F32, "5,2"), OF(TN_I64, "2", 5, 9)},
     {{.name = NULL}},
     "sequence_lens[1] is 9: it must lie in 0..5"},
    {"ReverseSequence",
     "a,b",
     "y",
     10,
     {ZEROS(TN_F32, "2,3"), OF(TN_I64, "2", -1, 3)},
     {INT("time_axis", 1), INT("batch_axis", 0)},
     "sequence_lens[0] is -1: it must lie in 0..3"},
    {"LSTM",
     "a,b,c,,d",
     "y",
     14,
     {ZEROS(TN_F32, "2,3,1"), ZEROS(TN_F32, "1,4,1"), ZEROS(TN_F32, "1,4,1"), OF(TN_I32, "3", 2, 0, 3)},
     {INT("hidden_size", 1)},
     "sequence_lens[2] is 3: it must lie in 0..2"},
    {"GRU",
     "a,b,c,,d",
     "y",
     14,
     {ZEROS(TN_F32, "2,2,1"), ZEROS(TN_F32, "1,3,1"), ZEROS(TN_F32, "1,3,1"), OF(TN_I32, "2", -7, 0)},
     {INT("hidden_size", 1), INT("layout", 1)},
     "sequence_lens[0] is -7: it must lie in 0..2"},
    {"RNN",
     "a,b,c,,d",
     "y",
     14,
     {ZEROS(TN_F32, "2,1,1"), ZEROS(TN_F32, "2,1,1"), ZEROS(TN_F32, "2,1,1"), OF(TN_I32, "1", 2147483647)},
     {INT("hidden_size", 1), TEXT("direction", "bidirectional")},
     "sequence_lens[0] is 2147483647: it must lie in 0..2"},
    {"NegativeLogLikelihoodLoss",
     "a,b",
     "y",
     13,
     {ZEROS(TN_F32, "2,3,2"), OF(TN_I64, "2,2", 0, 1, 3, 2)},
     {{.name = NULL}},
     "target[1][0] is 3: it must lie in 0..2"},
    {"NegativeLogLikelihoodLoss",
     "a,b,c",
     "y",
     13,
     {ZEROS(TN_F32, "2,3"), OF(TN_I32, "2", 0, -2), OF(TN_F32, "3", 1, 1, 1)},
     {INT("ignore_index", -1)},
     "target[1] is -2: it must lie in 0..2, or be the ignore_index -1"},
    {"SoftmaxCrossEntropyLoss",
     "a,b",
     "y",
     13,
     {ZEROS(TN_F32, "3,4"), OF(TN_I64, "3", 0, 3, 4)},
     {TEXT("reduction", "none")},
     "target[2] is 4: it must lie in 0..3"},
    {"SoftmaxCrossEntropyLoss",
     "a,b",
     "y",
     13,
     {ZEROS(TN_F32, "1,4,1,2"), OF(TN_I64, "1,1,2", 7, 8)},
     {INT("ignore_index", 7)},
     "target[0][0][1] is 8: it must lie in 0..3, or be the ignore_index 7"},
    {"RoiAlign",
     "a,b,c",
     "y",
     16,
     {ZEROS(TN_F32, "2,1,4,4"), ZEROS(TN_F32, "2,4"), OF(TN_I64, "2", 0, 2)},
     {INT("sampling_ratio", 2)},
     "batch_indices[1] is 2: it must lie in 0..1"},
    {"RoiAlign",
     "a,b,c",
     "y",
     16,
     {ZEROS(TN_F32, "2,1,4,4"), ZEROS(TN_F32, "2,4"), OF(TN_I64, "2", -1, 0)},
     {{.name = NULL}},
     "batch_indices[0] is -1: it must lie in 0..1"},
    {"RoiAlign",
     "a,b,c",
     "y",
     16,
     {ZEROS(TN_F32, "2,1,4,4"), OF(TN_F32, "1,4", 0, 0, 9000, 8000), ZEROS(TN_I64, "1")},
     {{.name = NULL}},
     "an output element is 8000 by 9000 elements of the input large"},
    {"MaxRoiPool",
     "a,b",
     "y",
     16,
     {ZEROS(TN_F32, "1,1,4,4"), OF(TN_F32, "1,5", 3, 0, 0, 2, 2)},
     {{.name = "pooled_shape", .value = 2}},
     "rois[0][0], the batch index, is 3: it must lie in 0..0"},
    {"TensorScatter",
     "a,b,c",
     "y",
     24,
     {ZEROS(TN_F32, "2,4,1"), ZEROS(TN_F32, "2,3,1"), OF(TN_I64, "2", 1, 2)},
     {INT("axis", 1)},
     "write_indices[1] is 2: it must lie in 0..1"},
    {"Bernoulli",
     "a",
     "y",
     15,
     {OF(TN_F32, "2,2", 0, 1, 1, 2)},
     {{.name = NULL}},
     "input[1][1] is 2: it must lie in 0..1"},
    {"Gather",
     "a,b",
     "y",
     13,
     {ZEROS(TN_F32, "4"), OF(TN_I64, "3", 0, 1, -5)},
     {{.name = NULL}},
     "index -5 at position 2 is out of range for 4 elements"},
    {"SequenceMap",
     "",
     "y",
     17,
     {{.shape = NULL}},
     {{.name = NULL}},
     "the sequence of input 1 has 3 items, that of input 0 has 2"},
};

static tn_tensor *tensor_of(const given *in) {
    int64_t dims[8];
    int rank = 0;
    for (const char *p = in->shape; *p; p += *p == ',')
        dims[rank++] = strtoll(p, (char **)&p, 10);
    tn_tensor *t = tn_tensor_create((tn_dtype)in->dtype, rank, dims);
    assert_non_null(t);
    for (int64_t i = 0; i < t->count && i < MOST; i++)
        if (in->dtype == TN_F32)
            ((float *)t->data)[i] = (float)in->data[i];
        else
            tn_store_i64((tn_dtype)in->dtype, t->data, i, in->data[i]);
    return t;
}

/* Two sequences of a, of 2 and 3 items, and how many sums of their items there are. */
static tn_text sequence_map(void) {
    tn_text g = message(), body = message(), attrs = message();
    put_text(&body, 2, "body");
    put_value(&body, 11, "p", TN_F32, NULL);
    put_value(&body, 11, "q", TN_F32, NULL);
    put_node(&body, "Add", "add", "p,q", "r");
    put_value(&body, 12, "r", TN_F32, NULL);
    attr_graph(&attrs, "body", body);
    put_node(&g, "SequenceConstruct", "s2", "a,a", "s");
    put_node(&g, "SequenceConstruct", "s3", "a,a,a", "t");
    put_message(&g, 1, node_bytes("SequenceMap", "n", "s,t", "made", attrs));
    put_node(&g, "SequenceLength", "length", "made", "y");
    return g;
}

static tn_text one_node(const rule *r) {
    tn_text g = message(), attrs = message();
    for (int i = 0; i < 3 && r->attrs[i].name; i++)
        if (strcmp(r->attrs[i].name, "pooled_shape") == 0)
            attr_ints(&attrs, r->attrs[i].name, 2, (const int64_t[]){r->attrs[i].value, r->attrs[i].value});
        else if (r->attrs[i].text)
            attr_text(&attrs, r->attrs[i].name, r->attrs[i].text);
        else
            attr_int(&attrs, r->attrs[i].name, r->attrs[i].value);
    put_message(&g, 1, node_bytes(r->op, "n", r->inputs, "y", attrs));
    return g;
}

/* A run is refused with `says` (NULL: whatever is said), of node 'n' of the rule's operator. */
static void is_refused(const rule *r, tn_model *model, const char *form, uint32_t n, const tn_binding *feed,
                       const char *says) {
    if (!model)
        fail_msg("%s, %s: %s", r->op, form, tn_error_message());
    for (int p = 0; p < RUN_PATHS; p++) {
        tn_session *s = tn_session_create(model, &run_paths[p].options);
        tn_object *y = NULL;
        const tn_output out = {.name = "y", .object = &y};
        tn_status status = s ? tn_session_run(s, n, feed, 1, &out) : tn_error_status();
        if (status != TN_ERR_INPUT || (says && !strstr(tn_error_what(), says)))
            fail_msg("%s, %s, %s: '%s' is not said: status %d: %s", r->op, form, run_paths[p].name, says, (int)status,
                     status ? tn_error_message() : "");
        if (says && (strncmp(tn_error_what(), r->op, strlen(r->op)) != 0 || !strstr(tn_error_what(), "'n'")))
            fail_msg("%s, %s, %s: the node is not named: %s", r->op, form, run_paths[p].name, tn_error_message());
        if (says && strstr(tn_error_what(), "require"))
            fail_msg("%s, %s, %s: a primitive is named: %s", r->op, form, run_paths[p].name, tn_error_message());
        tn_object_destroy(y);
        tn_session_destroy(s);
    }
    tn_model_destroy(model);
}

static char path[2][40] = {"/tmp/tenon-test-XXXXXX.onnx", "/tmp/tenon-test-XXXXXX.tenon"};

static int make_files(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        int fd = mkstemps(path[i], i ? 6 : 5);
        if (fd < 0 || close(fd) != 0)
            return -1;
    }
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    return unlink(path[0]) | unlink(path[1]);
}

/* Optimised and written, as an ONNX model and in the binary form. */
static void is_refused_written(const rule *r, const tn_text *bytes, uint32_t n, const tn_binding *feed, bool whole) {
    for (int i = 0; i < 2; i++) {
        tn_graph *g = load_bytes(bytes);
        if (!g ||
            tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .keep_composites = true, .for_onnx = i == 0)) !=
                TN_OK ||
            tn_graph_save(g, path[i]) != TN_OK)
            fail_msg("%s: %s", r->op, tn_error_message());
        tn_graph_destroy(g);
        is_refused(r, tn_model_load(path[i], NULL), i ? "in binary form" : "written", n, feed,
                   whole || i ? r->says : NULL);
    }
}

static void test_rules(void **state) {
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        for (int form = 0; form < 3; form++) { /* shapes known; none; all inputs but the first are constants */
            const rule *r = &rules[i];
            bool map = !*r->inputs;
            static const given two = OF(TN_F32, "2", 1, 2);
            tn_text g = map ? sequence_map() : one_node(r);
            tn_tensor *tensors[5] = {NULL};
            tn_binding feed[5];
            uint32_t n = 0;
            for (int k = 0; k < 5 && (map ? k == 0 : r->in[k].shape != NULL); k++) {
                const given *in = map ? &two : &r->in[k];
                tensors[k] = tensor_of(in);
                if (form == 2 && k > 0) {
                    tn_text bytes = message();
                    assert_int_equal(tn_onnx_write_tensor(&bytes, tensors[k], names[k]), TN_OK);
                    put_message(&g, 5, bytes);
                    continue;
                }
                put_value(&g, 11, names[k], in->dtype, form == 1 ? NULL : in->shape);
                feed[n++] = (tn_binding){.name = names[k], .tensor = tensors[k]};
            }
            put_value(&g, 12, "y", 0, NULL);
            tn_text bytes = model_bytes(r->opset, g);
            static const char *const forms[] = {"shapes known", "no shapes", "constants"};
            is_refused(r, tn_model_load_memory(bytes.data, bytes.len, NULL), forms[form], n, feed, r->says);
            /* what is not checked by "require" comes back as another node */
            is_refused_written(r, &bytes, n, feed, !map && strcmp(r->op, "Gather") != 0);
            tn_text_free(&bytes);
            for (int k = 0; k < 5; k++)
                tn_tensor_destroy(tensors[k]);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules)};
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
