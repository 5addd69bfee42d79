/* tenon ops: which operators there are, from the tables that the library itself goes by. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/ops_probe.h"
#include "onnx/custom.h"
#include "onnx/op.h"
#include "ops/ops.h"

static const struct {
    uint32_t bit;
    const char *name;
} trait_names[] = {
    {TN_ELEMENTWISE, "elementwise"},
    {TN_COMMUTATIVE, "commutative"},
    {TN_ASSOCIATIVE, "associative"},
    {TN_IDEMPOTENT, "idempotent"},
    {TN_VIEW, "view"},
    {TN_EXACT, "exact"},
    {TN_EFFECT, "effect"},
    {TN_RANDOM, "random"},
    {TN_CONTROL, "control"},
    {TN_CALL, "call"},
    {TN_CONSTANT, "constant"},
    {TN_REDUCTION, "reduction"},
    {TN_CONTRACTION, "contraction"},
    {TN_HOST, "host"},
};

/* Element types that are named together. */
static const struct {
    const char *name;
    uint32_t dtypes;
} groups[] = {
    {"float", 1u << TN_F16 | 1u << TN_BF16 | 1u << TN_F32 | 1u << TN_F64},
    {"int", 1u << TN_I8 | 1u << TN_I16 | 1u << TN_I32 | 1u << TN_I64 | 1u << TN_U8 | 1u << TN_U16 | 1u << TN_U32 |
                1u << TN_U64},
    {"bool", 1u << TN_BOOL},
    {"string", 1u << TN_STRING},
    {"complex", 1u << TN_C64 | 1u << TN_C128},
    {"float8", 1u << TN_F8E4M3FN | 1u << TN_F8E4M3FNUZ | 1u << TN_F8E5M2 | 1u << TN_F8E5M2FNUZ | 1u << TN_F8E8M0},
    {"packed", 1u << TN_I4 | 1u << TN_U4 | 1u << TN_F4E2M1 | 1u << TN_I2 | 1u << TN_U2},
};
#define ALL_DTYPES (((1u << TN_DTYPE_COUNT) - 1) & ~1u)

/* Versions of an ONNX operator that are treated alike. */
typedef struct range {
    const char *domain, *name;
    int since, until; /* until 0: the newest */
    const char *how;  /* "primitives", "host", "no" */
} range;

typedef struct listing {
    const tn_cli_options *options;
    TN_VEC(const tn_op *) ops;
    TN_VEC(uint32_t) dtypes; /* by op */
    TN_VEC(range) ranges;    /* by domain, name, since */
} listing;

/* --- collecting --------------------------------------------------------------------------------------------------------------- */

static bool asked(const listing *l, const char *name) {
    for (uint32_t i = 0; i < l->options->args.len; i++)
        if (strcmp(l->options->args.data[i], name) == 0)
            return true;
    return l->options->args.len == 0;
}

static int compare_ranges(const void *a, const void *b) {
    const range *x = a, *y = b;
    int order = strcmp(x->domain, y->domain);
    if (!order)
        order = strcmp(x->name, y->name);
    return order ? order : (x->since > y->since) - (x->since < y->since);
}

static tn_status add_range(listing *l, const char *domain, const char *name, int since, int until, const char *how) {
    const char *shown = *domain ? domain : "ai.onnx";
    if (!asked(l, name))
        return TN_OK;
    return tn_vec_push(NULL, &l->ranges, ((range){shown, name, since, until, how})) ? TN_OK : TN_ERR_MEMORY;
}

/* Neighbouring ranges that are treated alike become one. */
static void join_ranges(listing *l) {
    uint32_t n = 0;
    if (l->ranges.len)
        qsort(l->ranges.data, l->ranges.len, sizeof *l->ranges.data, compare_ranges);
    for (uint32_t i = 0; i < l->ranges.len; i++) {
        range *last = n ? &l->ranges.data[n - 1] : NULL, now = l->ranges.data[i];
        if (last && strcmp(last->domain, now.domain) == 0 && strcmp(last->name, now.name) == 0 && last->until &&
            last->until + 1 == now.since && strcmp(last->how, now.how) == 0)
            last->until = now.until;
        else
            l->ranges.data[n++] = now;
    }
    l->ranges.len = n;
}

static tn_status collect(listing *l) {
    const tn_op_table *own = tn_ops_table();
    for (uint32_t i = 0; i < own->count; i++) {
        const tn_op *op = own->rows[i];
        uint32_t dtypes;
        if (op->traits & TN_TERMINATOR || !asked(l, op->name))
            continue;
        TN_TRY(tn_ops_probe(own, op, &dtypes));
        if (!tn_vec_push(NULL, &l->ops, op) || !tn_vec_push(NULL, &l->dtypes, dtypes))
            return TN_ERR_MEMORY;
    }
    uint32_t families;
    const tn_onnx_family *const *family = tn_onnx_families(&families);
    for (uint32_t f = 0; f < families; f++)
        for (uint32_t i = 0; i < family[f]->count; i++) {
            const tn_onnx_op *row = &family[f]->rows[i];
            if (!tn_onnx_listed(row))
                continue;
            TN_TRY(add_range(l, row->domain, row->name, row->since, row->until,
                             row->expand ? "primitives"
                             : row->host ? "host"
                                         : "no"));
        }
    join_ranges(l);
    for (uint32_t i = 0; i < l->options->args.len; i++) {
        const char *name = l->options->args.data[i];
        bool found = false;
        for (uint32_t k = 0; k < l->ops.len; k++)
            found = found || strcmp(l->ops.data[k]->name, name) == 0;
        for (uint32_t k = 0; k < l->ranges.len; k++)
            found = found || strcmp(l->ranges.data[k].name, name) == 0;
        for (uint32_t k = 0; k < tn_op_set_count(l->options->op_set); k++)
            found = found || strcmp(tn_op_set_row(l->options->op_set, k)->name, name) == 0;
        if (!found) {
            tn_fail(TN_ERR_INPUT, "there is no operator '%s'", name);
            tn_fail_hint("'tenon ops' lists all");
            return TN_ERR_INPUT;
        }
    }
    return TN_OK;
}

/* --- words ------------------------------------------------------------------------------------------------------------------------ */

/* "float, int" or single names; what is left of `dtypes`. */
static void put_dtypes(uint32_t dtypes, tn_text *out) {
    const char *between = "";
    if (dtypes == ALL_DTYPES) {
        tn_text_add(out, "any");
        return;
    }
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if ((dtypes & groups[i].dtypes) == groups[i].dtypes) {
            tn_text_printf(out, "%s%s", between, groups[i].name);
            between = ", ";
            dtypes &= ~groups[i].dtypes;
        }
    for (int d = 1; d < TN_DTYPE_COUNT; d++)
        if (dtypes >> d & 1) {
            tn_text_printf(out, "%s%s", between, tn_dtype_name((tn_dtype)d));
            between = ", ";
        }
}

static void put_traits(uint32_t traits, tn_text *out) {
    const char *between = "";
    for (size_t i = 0; i < sizeof trait_names / sizeof *trait_names; i++)
        if (traits & trait_names[i].bit) {
            tn_text_printf(out, "%s%s", between, trait_names[i].name);
            between = ", ";
        }
}

/* How a compiled plan runs it. */
static const char *compiled(const tn_op *op) {
    if (op->lowering == TN_LOWER_NOTHING)
        return "nothing to do";
    if (op->dialect == TN_DIALECT_COMPOSITE && op->lowering == TN_LOWER_HOST)
        return "by its definition";
    if (op->lowering == TN_LOWER_CONTROL)
        return "branches and loops";
    return op->lowering == TN_LOWER_HOST ? "on the host" : "kernels";
}

static const char *gradient(const tn_op *op) {
    return op->vjp ? "yes" : op->no_gradient ? op->no_gradient : "not yet";
}

static void put_versions(const range *r, tn_text *out) {
    if (r->since == r->until)
        tn_text_printf(out, "%d", r->since);
    else if (r->until)
        tn_text_printf(out, "%d-%d", r->since, r->until);
    else
        tn_text_printf(out, "%d-", r->since);
}

static const char *how_text(const range *r) {
    return strcmp(r->how, "no") == 0 ? "not supported" : strcmp(r->how, "host") == 0 ? "host operator" : "primitives";
}

/* The end of the run of ranges of one operator that begins at i. */
static uint32_t same_operator(const listing *l, uint32_t i) {
    uint32_t end = i + 1;
    while (end < l->ranges.len && strcmp(l->ranges.data[end].domain, l->ranges.data[i].domain) == 0 &&
           strcmp(l->ranges.data[end].name, l->ranges.data[i].name) == 0)
        end++;
    return end;
}

/* "1-12, 13- (host operator)": versions, and how, where it is not by primitives alone. */
static void put_ranges(const listing *l, uint32_t i, uint32_t end, tn_text *out) {
    for (uint32_t k = i; k < end; k++) {
        tn_text_add(out, k > i ? ", " : "");
        put_versions(&l->ranges.data[k], out);
        if (strcmp(l->ranges.data[k].how, "primitives") != 0)
            tn_text_printf(out, " (%s)", how_text(&l->ranges.data[k]));
    }
}

/* --- text and markdown -------------------------------------------------------------------------------------------------------------- */

static void put_domain_heading(const listing *l, uint32_t i, bool markdown, tn_text *out) {
    const char *domain = l->ranges.data[i].domain;
    int newest = tn_onnx_newest(domain);
    uint32_t names = 0;
    for (uint32_t k = i; k < l->ranges.len && strcmp(l->ranges.data[k].domain, domain) == 0; k = same_operator(l, k))
        names++;
    tn_text_printf(out,
                   markdown ? "\n## ONNX operators of %s\n\n%" PRIu32 " operators, operator sets 1 to %d\n\n"
                              "| operator | versions | reference | compiled |\n|---|---|---|---|\n"
                            : "\nONNX operators of %s (%" PRIu32 ", operator sets 1 to %d):\n",
                   domain, names, newest);
}

/* The row of a table: one for each range of versions that are treated alike. */
static void put_onnx_row(const range *r, tn_text *out) {
    bool supported = strcmp(r->how, "no") != 0;
    tn_text_printf(out, "| %s | ", r->name);
    put_versions(r, out);
    tn_text_printf(out, " | %s | %s |\n", supported ? "yes" : "no",
                   !supported                    ? "no"
                   : strcmp(r->how, "host") == 0 ? "on the host"
                                                 : "by primitives");
}

static void put_onnx(const listing *l, bool markdown, tn_text *out) {
    for (uint32_t i = 0, end; i < l->ranges.len; i = end) {
        end = same_operator(l, i);
        if (i == 0 || strcmp(l->ranges.data[i].domain, l->ranges.data[i - 1].domain) != 0)
            put_domain_heading(l, i, markdown, out);
        for (uint32_t k = i; markdown && k < end; k++)
            put_onnx_row(&l->ranges.data[k], out);
        if (markdown)
            continue;
        tn_text_printf(out, "  %-28s ", l->ranges.data[i].name);
        put_ranges(l, i, end, out);
        tn_text_add(out, "\n");
    }
}

static void put_custom(const listing *l, bool markdown, tn_text *out) {
    const tn_op_set *set = l->options->op_set;
    for (uint32_t i = 0, shown = 0; i < tn_op_set_count(set); i++) {
        const tn_custom_row *row = tn_op_set_row(set, i);
        if (!asked(l, row->name))
            continue;
        if (!shown++)
            tn_text_add(out, markdown ? "\n## Operators of plugins\n\n| operator | versions | |\n|---|---|---|\n"
                                      : "\nOperators of plugins:\n");
        range r = {.since = row->since, .until = row->until == INT32_MAX ? 0 : row->until};
        tn_text_printf(out, markdown ? "| %s.%s | " : "  %s.%s  ", row->domain, row->name);
        put_versions(&r, out);
        tn_text_printf(out, markdown ? " | %s |\n" : "  %s\n", row->op.doc ? row->op.doc : "");
    }
}

static void put_op(const tn_op *op, uint32_t dtypes, tn_text *out) {
    tn_text_printf(out, "  %s(%s)\n      %s\n      ", op->name, op->inputs ? op->inputs : "", op->doc ? op->doc : "");
    if (dtypes) {
        put_dtypes(dtypes, out);
        tn_text_add(out, "; ");
    }
    if (op->traits & ~(uint32_t)(TN_OPTIONAL_INPUTS | TN_TERMINATOR | TN_OWNED_ROW)) {
        put_traits(op->traits, out);
        tn_text_add(out, "; ");
    }
    tn_text_printf(out, "compiled: %s; gradient: %s\n", compiled(op), gradient(op));
}

static void put_text(const listing *l, tn_text *out) {
    static const char *const titles[] = {"Primitives", "Composites, defined by primitives"};
    for (int composite = 0; composite < 2; composite++)
        for (uint32_t i = 0, shown = 0; i < l->ops.len; i++)
            if ((l->ops.data[i]->dialect == TN_DIALECT_COMPOSITE) == composite) {
                if (!shown++)
                    tn_text_printf(out, "%s%s:\n", composite ? "\n" : "", titles[composite]);
                put_op(l->ops.data[i], l->dtypes.data[i], out);
            }
    put_onnx(l, false, out);
    put_custom(l, false, out);
}

/* A cell of a table: what would end it is escaped. */
static void put_cell(const char *text, tn_text *out) {
    for (; text && *text; text++)
        tn_text_printf(out, "%s%c", *text == '|' || *text == '<' || *text == '*' ? "\\" : "", *text);
    tn_text_add(out, " | ");
}

static void put_markdown(const listing *l, tn_text *out) {
    static const char *const titles[] = {"Primitives", "Composites"};
    tn_text_add(
        out,
        "# Operators\n\n"
        "What this build runs. Written by `tenon ops --markdown`; `tenon ops NAME` says the same of one operator.\n\n"
        "- *Versions* are operator sets: 7-12 from the 7th to the 12th, 13- from the 13th on.\n"
        "- *Reference* is the interpreter (`--backend ref`), which every other way to run a model is compared with.\n"
        "- *Compiled* is the plan (`--backend cpu`, the default). An ONNX operator that runs *by primitives* is\n"
        "  replaced by those of the second part of this page, whose rows say how they run; one that runs *on the "
        "host*\n"
        "  is evaluated as the reference does, inside the plan.\n"
        "- *Element types* of an ONNX operator are those that the standard gives it in each version. For primitives,\n"
        "  float is f16, bf16, f32, f64; int the signed and unsigned integers of 8 to 64 bits; float8 those of 8 "
        "bits;\n"
        "  packed i4, u4, f4e2m1, i2, u2; complex c64 and c128.\n");
    put_onnx(l, true, out);
    put_custom(l, true, out);
    for (int composite = 0; composite < 2; composite++) {
        tn_text_printf(out,
                       "\n## %s\n\n| operator | meaning | element types | traits | reference | compiled |\n"
                       "|---|---|---|---|---|---|\n",
                       titles[composite]);
        for (uint32_t i = 0; i < l->ops.len; i++) {
            const tn_op *op = l->ops.data[i];
            if ((op->dialect == TN_DIALECT_COMPOSITE) != composite)
                continue;
            tn_text_printf(out, "| `%s(%s)` | ", op->name, op->inputs ? op->inputs : "");
            put_cell(op->doc, out);
            put_dtypes(l->dtypes.data[i], out);
            tn_text_add(out, " | ");
            put_traits(op->traits, out);
            tn_text_printf(out, " | yes | %s |\n", compiled(op));
        }
    }
}

/* --- JSON -------------------------------------------------------------------------------------------------------------------------------- */

static void put_string(const char *key, const char *value, const char *after, tn_text *out) {
    tn_text_printf(out, "\"%s\": ", key);
    if (value)
        tn_text_json(out, value, strlen(value));
    else
        tn_text_add(out, "null");
    tn_text_add(out, after);
}

static void put_json_op(const tn_op *op, uint32_t dtypes, tn_text *out) {
    const char *between = "";
    tn_text_add(out, "{");
    put_string("name", op->name, ", ", out);
    put_string("kind", op->dialect == TN_DIALECT_COMPOSITE ? "composite" : "primitive", ", ", out);
    put_string("inputs", op->inputs, ", ", out);
    put_string("doc", op->doc, ", \"dtypes\": [", out);
    for (int d = 1; d < TN_DTYPE_COUNT; d++)
        if (dtypes >> d & 1) {
            tn_text_printf(out, "%s\"%s\"", between, tn_dtype_name((tn_dtype)d));
            between = ", ";
        }
    tn_text_add(out, "], \"traits\": [");
    between = "";
    for (size_t i = 0; i < sizeof trait_names / sizeof *trait_names; i++)
        if (op->traits & trait_names[i].bit) {
            tn_text_printf(out, "%s\"%s\"", between, trait_names[i].name);
            between = ", ";
        }
    tn_text_add(out, "], ");
    put_string("compiled", compiled(op), ", ", out);
    tn_text_printf(out, "\"gradient\": %s, ", op->vjp ? "true" : "false");
    put_string("no_gradient", op->vjp ? NULL : gradient(op), "}", out);
}

static void put_json(const listing *l, tn_text *out) {
    tn_text_add(out, "{");
    put_string("version", tn_version(), ",\n \"operators\": [", out);
    for (uint32_t i = 0; i < l->ops.len; i++) {
        tn_text_add(out, i ? ",\n  " : "\n  ");
        put_json_op(l->ops.data[i], l->dtypes.data[i], out);
    }
    tn_text_add(out, "],\n \"onnx\": [");
    for (uint32_t i = 0; i < l->ranges.len; i++) {
        const range *r = &l->ranges.data[i];
        tn_text_add(out, i ? ",\n  {" : "\n  {");
        put_string("domain", r->domain, ", ", out);
        put_string("name", r->name, ", ", out);
        int newest = tn_onnx_newest(r->domain);
        tn_text_printf(out, "\"since\": %d, \"until\": %d, \"supported\": %s, ", r->since, r->until ? r->until : newest,
                       strcmp(r->how, "no") ? "true" : "false");
        put_string("by", strcmp(r->how, "no") ? r->how : NULL, "}", out);
    }
    tn_text_add(out, "],\n \"plugins\": [");
    for (uint32_t i = 0, shown = 0; i < tn_op_set_count(l->options->op_set); i++) {
        const tn_custom_row *row = tn_op_set_row(l->options->op_set, i);
        if (!asked(l, row->name))
            continue;
        tn_text_add(out, shown++ ? ",\n  {" : "\n  {");
        put_string("domain", row->domain, ", ", out);
        put_string("name", row->name, ", ", out);
        put_string("doc", row->op.doc, ", ", out);
        tn_text_printf(out, "\"since\": %d, \"until\": ", row->since);
        tn_text_printf(out, row->until == INT32_MAX ? "null}" : "%d}", row->until);
    }
    tn_text_add(out, "]}\n");
}

tn_status tn_cli_ops(const tn_cli_options *options) {
    listing l = {.options = options};
    tn_text out;
    tn_text_init(&out, NULL);
    tn_status status = TN_OK;
    if (options->json && options->markdown)
        status = tn_fail(TN_ERR_USAGE, "--json and --markdown exclude each other");
    if (status == TN_OK)
        status = collect(&l);
    if (status == TN_OK && options->json)
        put_json(&l, &out);
    else if (status == TN_OK && options->markdown)
        put_markdown(&l, &out);
    else if (status == TN_OK)
        put_text(&l, &out);
    if (status == TN_OK)
        status = tn_cli_put(&out);
    tn_text_free(&out);
    tn_vec_free(NULL, &l.ops);
    tn_vec_free(NULL, &l.dtypes);
    tn_vec_free(NULL, &l.ranges);
    return status;
}
