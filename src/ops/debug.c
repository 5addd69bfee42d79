/* print and assert: effects for debugging, stripped by one pass. require: a value that goes on only where a rule about data holds. */
#include "base/buffer.h"
#include "ops/contents.h"
#include "ops/infer.h"
#include "ops/ops.h"
#include "ops/support.h"

#include <inttypes.h>
#include <string.h>

#define SHOWN_ELEMENTS 64

/* --- print --------------------------------------------------------------------------------------------------------------- */

static tn_status print_infer(tn_infer *c) {
    tn_value x = tn_node_input(c->graph, c->node, 0);
    TN_TRY(tn_infer_type(c, 0, tn_value_type(c->graph, x)));
    const tn_dim *dims;
    int32_t n = tn_value_contents(c->graph, x, &dims);
    return n < 0 ? TN_OK : tn_infer_known(c, 0, (uint32_t)n, dims);
}

static void print_element(tn_text *text, const tn_tensor *t, int64_t i) {
    tn_dtype dtype = (tn_dtype)t->dtype;
    tn_string s;
    if (dtype == TN_STRING) {
        if (tn_tensor_get_string(t, i, &s) == TN_OK)
            tn_text_quoted(text, s.data, s.length);
    } else if (dtype == TN_BOOL) {
        tn_text_add(text, tn_tensor_get_i64(t, i) ? "true" : "false");
    } else if (dtype == TN_U64) {
        tn_text_printf(text, "%" PRIu64, (uint64_t)tn_tensor_get_i64(t, i));
    } else if (tn_dtype_is_int(dtype)) {
        tn_text_printf(text, "%" PRId64, tn_tensor_get_i64(t, i));
    } else if (tn_dtype_is_complex(dtype)) {
        tn_dtype part = dtype == TN_C64 ? TN_F32 : TN_F64;
        tn_text_add(text, "(");
        tn_text_f64(text, tn_load_f64(part, t->data, 2 * i));
        tn_text_add(text, ", ");
        tn_text_f64(text, tn_load_f64(part, t->data, 2 * i + 1));
        tn_text_add(text, ")");
    } else if (dtype == TN_F64) {
        tn_text_f64(text, tn_tensor_get_f64(t, i));
    } else {
        tn_text_f32(text, (float)tn_tensor_get_f64(t, i));
    }
}

/* The elements as nested lists, the first SHOWN_ELEMENTS of them. `t` is contiguous. */
static void print_elements(tn_text *text, const tn_tensor *t) {
    int64_t shown = t->count < SHOWN_ELEMENTS ? t->count : SHOWN_ELEMENTS;
    if (t->count == 0)
        tn_text_add(text, "[]");
    for (int64_t i = 0; i < shown; i++) {
        /* brackets open where the index is 0 from some axis on */
        int64_t block = 1, opened = 0;
        for (int a = t->rank; a-- > 0; opened++) {
            block *= t->dims[a];
            if (i % block)
                break;
        }
        if (i)
            tn_text_add(text, ", ");
        for (int64_t b = 0; b < opened; b++)
            tn_text_add(text, "[");
        print_element(text, t, i);
        block = 1;
        for (int a = t->rank; a-- > 0;) {
            block *= t->dims[a];
            if ((i + 1) % block)
                break;
            tn_text_add(text, "]");
        }
    }
    if (shown < t->count)
        tn_text_printf(text, ", ... (%" PRId64 " elements)", t->count);
}

static tn_status print_text(const tn_eval *e, tn_text *text) {
    tn_string label = tn_attr_string(e->graph, e->node, "label");
    if (label.length) {
        tn_text_bytes(text, label.data, label.length);
        tn_text_add(text, ": ");
    }
    tn_tensor *x = tn_object_tensor(e->in[0]);
    if (!x) {
        if (tn_object_kind(e->in[0]) == TN_KIND_SEQUENCE)
            tn_text_printf(text, "sequence of %zu", tn_sequence_length(e->in[0]));
        else
            tn_text_add(text, tn_object_kind(e->in[0]) == TN_KIND_OPTIONAL ? "optional" : "map");
        return text->failed ? TN_ERR_MEMORY : TN_OK;
    }
    char shape[256];
    tn_tensor *t = tn_eval_contiguous(e, x);
    if (!t)
        return tn_error_status();
    tn_text_printf(text, "%s ", tn_tensor_describe(t, shape, sizeof shape));
    print_elements(text, t);
    tn_tensor_destroy(t);
    return text->failed ? tn_error_status() : TN_OK;
}

static tn_status print_eval(tn_eval *e) {
    if (e->log) {
        tn_text text;
        tn_text_init(&text, e->heap);
        tn_status status = print_text(e, &text);
        if (status == TN_OK)
            e->log(e->log_ctx, text.data ? text.data : "");
        tn_text_free(&text);
        if (status != TN_OK)
            return status;
    }
    return tn_eval_set(e, 0, tn_object_retain(e->in[0]));
}

/* --- assert ------------------------------------------------------------------------------------------------------------------ */

static tn_status assert_infer(tn_infer *c) {
    tn_value cond = tn_node_input(c->graph, c->node, 0);
    char text[200];
    if (tn_value_dtype(c->graph, cond) != TN_BOOL)
        return tn_infer_fail(c, "the condition must be bool, but is %s",
                             tn_value_describe(c->graph, cond, text, sizeof text));
    return TN_OK;
}

static tn_status assert_eval(tn_eval *e) {
    const tn_tensor *t = tn_eval_in(e, 0);
    tn_string message = tn_attr_string(e->graph, e->node, "message");
    int shown = message.length > 500 ? 500 : (int)message.length;
    for (int64_t i = 0; i < t->count; i++)
        if (!tn_tensor_get_i64(t, i))
            return tn_eval_fail(e, TN_ERR_FAILED, "assertion failed%s%.*s (element %" PRId64 " of %" PRId64 ")",
                                shown ? ": " : "", shown, shown ? message.data : "", i, t->count);
    return TN_OK;
}

/* --- require ----------------------------------------------------------------------------------------------------------------- */

/* No effect: what reads x through it waits for the check, and where nothing does nobody can be misled. Its elements are known only
   when it is known to hold: else what follows would be computed without it. */
static tn_status require_infer(tn_infer *c) {
    tn_graph *g = c->graph;
    tn_value x = tn_node_input(g, c->node, 0), holds = tn_node_input(g, c->node, 1);
    char text[200];
    if (tn_value_dtype(g, holds) != TN_BOOL)
        return tn_infer_fail(c, "what must hold must be bool, but is %s",
                             tn_value_describe(g, holds, text, sizeof text));
    TN_TRY(tn_infer_type(c, 0, tn_value_type(g, x)));
    const tn_dim *dims;
    int32_t n = tn_value_contents(g, x, &dims);
    int64_t count = 1;
    uint8_t truth[TN_MAX_CONTENTS];
    int rank = tn_value_rank(g, holds);
    if (n < 0 || rank < 0 || rank > 1 || (rank == 1 && !tn_dim_is_const(g, tn_value_dims(g, holds)[0], &count)) ||
        count > TN_MAX_CONTENTS || !tn_contents_truth(g, holds, (int32_t)count, truth))
        return TN_OK;
    for (int64_t i = 0; i < count; i++)
        if (truth[i] != 1)
            return TN_OK;
    return tn_infer_known(c, 0, (uint32_t)n, dims);
}

/* The first element that does not hold, or -1. */
static int64_t first_false(const tn_tensor *t) {
    if (t->contiguous && t->count > 0) {
        const uint8_t *data = t->data, *at = memchr(data, 0, (size_t)t->count);
        return at ? at - data : -1;
    }
    for (int64_t i = 0; i < t->count; i++)
        if (!tn_tensor_get_i64(t, i))
            return i;
    return -1;
}

/* "[2][0]" of element i; nothing of a scalar. */
static void say_index(tn_text *text, const tn_tensor *t, int64_t i) {
    int64_t block = t->count;
    for (int a = 0; a < t->rank; a++) {
        block /= t->dims[a];
        tn_text_printf(text, "[%" PRId64 "]", i / block);
        i %= block;
    }
}

/* The message, in which {i} stands for the index of element `i`, {0} to {9} for that element of what is shown. */
static void say_rule(const tn_eval *e, tn_text *text, const tn_tensor *holds, int64_t i) {
    tn_string m = tn_attr_string(e->graph, e->node, "message");
    for (size_t k = 0; k < m.length; k++) {
        bool slot = m.data[k] == '{' && k + 2 < m.length && m.data[k + 2] == '}';
        uint32_t which = slot && m.data[k + 1] >= '0' && m.data[k + 1] <= '9' ? (uint32_t)(m.data[k + 1] - '0') : 10;
        if (slot && m.data[k + 1] == 'i') {
            say_index(text, holds, i);
            k += 2;
        } else if (2 + which < e->inputs) {
            const tn_tensor *shown = tn_eval_in(e, 2 + which);
            if (shown->count == 1 || i < shown->count)
                print_element(text, shown, shown->count == 1 ? 0 : i);
            k += 2;
        } else {
            tn_text_bytes(text, m.data + k, 1);
        }
    }
}

static tn_status require_eval(tn_eval *e) {
    const tn_tensor *holds = tn_eval_in(e, 1);
    int64_t i = first_false(holds);
    if (i < 0)
        return tn_eval_set(e, 0, tn_object_retain(e->in[0]));
    tn_text text;
    tn_text_init(&text, e->heap);
    say_rule(e, &text, holds, i);
    tn_status status =
        text.failed ? tn_error_status() : tn_eval_fail(e, TN_ERR_INPUT, "%.600s", text.data ? text.data : "");
    tn_text_free(&text);
    return status;
}

/* --- rows ---------------------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec print_attrs[] = {{.name = "label", .kind = TN_ATTR_STRING, .s = ""}, {0}};
static const tn_attr_spec assert_attrs[] = {{.name = "message", .kind = TN_ATTR_STRING, .s = ""}, {0}};

static const tn_attr_spec require_attrs[] = {{.name = "message", .kind = TN_ATTR_STRING, .required = true}, {0}};

static const tn_op rows[] = {
    {
        .name = "print",
        .dialect = TN_DIALECT_PRIMITIVE,
        .min_inputs = 1,
        .max_inputs = 1,
        .min_outputs = 1,
        .max_outputs = 1,
        .traits = TN_EFFECT | TN_HOST,
        .attrs = print_attrs,
        .inputs = "x",
        .doc = "x itself; its elements go to the log callback.",
        .infer = print_infer,
        .eval = print_eval,
    },
    {
        .name = "assert",
        .dialect = TN_DIALECT_PRIMITIVE,
        .min_inputs = 1,
        .max_inputs = 1,
        .traits = TN_EFFECT | TN_HOST,
        .attrs = assert_attrs,
        .inputs = "cond",
        .doc = "The run fails with the message unless every element holds.",
        .infer = assert_infer,
        .eval = assert_eval,
        .no_gradient = "has no outputs",
    },
    {
        .name = "require",
        .dialect = TN_DIALECT_PRIMITIVE,
        .min_inputs = 2,
        .max_inputs = -1,
        .min_outputs = 1,
        .max_outputs = 1,
        .traits = TN_HOST | TN_EXACT,
        .attrs = require_attrs,
        .inputs = "x, holds, shown...",
        .doc = "x itself; the run fails with the message unless every element of holds does. In it {i} is the index of "
               "the first that does "
               "not, {0}, {1}, ... that element of each shown.",
        .infer = require_infer,
        .eval = require_eval,
    },
};

const tn_op_family tn_family_debug = {rows, sizeof rows / sizeof rows[0]};
