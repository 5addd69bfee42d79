/* Models: loading, and what is said about inputs and outputs. */
#include "runtime/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "ir/binary.h"
#include "ir/text.h"
#include "lower/packs.h"
#include "onnx/custom.h"
#include "onnx/late.h"
#include "onnx/model.h"
#include "onnx/op.h"

static const tn_model_options no_options = {.size = sizeof no_options};

static const tn_model_options *checked(const tn_model_options *o) {
    if (!o)
        return &no_options;
    if (o->size != sizeof *o) {
        tn_fail(TN_ERR_USAGE, "tn_model_options: the size is %zu, not %zu", o->size, sizeof *o);
        tn_fail_hint("make it with TN_OPTIONS(tn_model_options, ...)");
        return NULL;
    }
    return o;
}

/* A model over `graph`; takes it over when `owned`, in any case. */
static tn_model *model_make(tn_graph *graph, bool owned, const tn_model_options *o) {
    if (!graph)
        return NULL;
    tn_model *m = tn_alloc(o->heap, sizeof *m);
    if (m && (!(m->mutex = tn_mutex_create(o->heap)) || !(m->packs = tn_packs_create(o->heap)))) {
        tn_mutex_destroy(o->heap, m->mutex);
        tn_free(o->heap, m);
        m = NULL;
    }
    if (!m) {
        if (owned)
            tn_graph_destroy(graph);
        return NULL;
    }
    m->refs = 1;
    m->heap = o->heap;
    m->graph = graph;
    m->owned = owned;
    m->log = o->log;
    m->log_user = o->log_user;
    m->notes = o->notes;
    m->max_ops = o->max_ops;
    tn_graph_freeze(graph);
    return m;
}

static tn_onnx_options onnx_options(const tn_model_options *o) {
    return (tn_onnx_options){.heap = o->heap, .max_bytes = o->max_bytes, .max_nodes = o->max_ops, .ops = o->ops};
}

/* A graph from the text or binary form; *mine false: it is neither. `map` may be NULL. */
static tn_graph *load_own_form(const void *bytes, size_t size, tn_mapping *map, const tn_model_options *o, bool *mine) {
    bool binary = tn_binary_is(bytes, size), text = size >= 6 && memcmp(bytes, "tenon ", 6) == 0;
    *mine = binary || text;
    if (!*mine)
        return NULL;
    if (o->max_bytes && size > o->max_bytes) {
        tn_fail(TN_ERR_LIMIT, "the file has %zu bytes, more than the limit", size);
        return NULL;
    }
    const tn_op_table *table = tn_onnx_table_with(o->ops);
    if (!table)
        return NULL;
    tn_binary_options options = {.max_nodes = o->max_ops, .unknown_op = tn_onnx_make_row};
    return binary ? tn_graph_read_binary_from(o->heap, table, bytes, size, map, &options)
                  : tn_graph_parse_any(o->heap, table, tn_onnx_make_row, bytes, size);
}

tn_model *tn_model_load(const char *path, const tn_model_options *options) {
    const tn_model_options *o = checked(options);
    if (!o)
        return NULL;
    if (!path) {
        tn_fail(TN_ERR_USAGE, "a model's path is NULL");
        return NULL;
    }
    tn_mapping *map = tn_mapping_open(o->heap, path);
    if (!map)
        return NULL;
    bool mine;
    tn_graph *g = load_own_form(tn_mapping_data(map), tn_mapping_size(map), map, o, &mine);
    tn_mapping_release(map);
    if (!mine) {
        tn_onnx_options onnx = onnx_options(o);
        g = tn_onnx_load_file(path, &onnx);
    }
    return model_make(g, true, o);
}

static tn_status external(void *ctx, const char *location, const void **bytes, size_t *size) {
    const tn_model_options *o = ctx;
    *bytes = o->external ? o->external(o->external_user, location, size) : NULL;
    return *bytes ? TN_OK : tn_fail(TN_ERR_IO, "external data '%s' is not given", location);
}

tn_model *tn_model_load_memory(const void *bytes, size_t size, const tn_model_options *options) {
    const tn_model_options *o = checked(options);
    if (!o)
        return NULL;
    if (!bytes) {
        tn_fail(TN_ERR_USAGE, "a model's bytes are NULL");
        return NULL;
    }
    bool mine;
    tn_graph *g = load_own_form(bytes, size, NULL, o, &mine);
    if (mine)
        return model_make(g, true, o);
    tn_onnx_options onnx = onnx_options(o);
    tn_model_options copy = *o;
    return model_make(tn_onnx_load_memory(bytes, size, external, &copy, &onnx), true, o);
}

tn_model *tn_model_from_graph(tn_graph *graph, const tn_model_options *options) {
    const tn_model_options *o = checked(options);
    if (!o)
        return NULL;
    if (!graph) {
        tn_fail(TN_ERR_USAGE, "a model's graph is NULL");
        return NULL;
    }
    if (tn_graph_check(graph) != TN_OK || tn_graph_verify(graph) != TN_OK)
        return NULL;
    return model_make(graph, false, o);
}

tn_model *tn_model_retain(tn_model *m) {
    m->refs++;
    return m;
}

static void compiled_free(tn_heap *heap, tn_compiled *c) {
    if (c->plan)
        tn_plan_destroy(c->plan);
    else
        tn_graph_destroy(c->graph);
    tn_late_cache_destroy(c->late);
    tn_free(heap, c->key);
    tn_free(heap, c->reason);
    tn_free(heap, c);
}

void tn_model_destroy(tn_model *m) {
    if (!m || --m->refs > 0)
        return;
    for (uint32_t i = 0; i < m->compiled.len; i++)
        compiled_free(m->heap, m->compiled.data[i]);
    tn_vec_free(m->heap, &m->compiled);
    tn_packs_destroy(m->packs);
    tn_mutex_destroy(m->heap, m->mutex);
    if (m->owned)
        tn_graph_destroy(m->graph);
    tn_free(m->heap, m);
}

/* --- compiled forms ---------------------------------------------------------------------------------------------------------------- */

void tn_model_release(tn_model *m, tn_compiled *c) {
    if (!c)
        return;
    tn_mutex_lock(m->mutex);
    c->refs--;
    /* over the limit, the one used longest ago goes */
    uint32_t idle = 0, oldest = UINT32_MAX;
    for (uint32_t i = 0; i < m->compiled.len; i++) {
        const tn_compiled *e = m->compiled.data[i];
        if (e->refs)
            continue;
        idle++;
        if (oldest == UINT32_MAX || e->used < m->compiled.data[oldest]->used)
            oldest = i;
    }
    tn_compiled *gone = NULL;
    if (idle > TN_COMPILED_KEPT) {
        gone = m->compiled.data[oldest];
        m->compiled.data[oldest] = m->compiled.data[--m->compiled.len];
    }
    tn_mutex_unlock(m->mutex);
    if (gone)
        compiled_free(m->heap, gone);
}

static char *key_text(const tn_model *m, const tn_compile_key *key) {
    tn_text t;
    tn_text_init(&t, m->heap);
    tn_text_printf(&t, "%d %d %d %d %d %d %d %d|%s|%s|%s|%s|", key->backend, key->level, key->isa, key->verify,
                   key->describe_only, key->measure, key->layout, key->reuse, key->disable, key->passes, key->dump,
                   key->dims);
    for (uint32_t i = 0; i < tn_graph_input_count(m->graph); i++)
        tn_text_add(&t, key->fed && key->fed[i] ? "1" : "0");
    for (uint32_t i = 0; key->cut && i < key->cut->feeds; i++)
        tn_text_printf(&t, "<%" PRIu32, key->cut->feed[i].id);
    for (uint32_t i = 0; key->cut && i < key->cut->fetches; i++)
        tn_text_printf(&t, ">%" PRIu32 " %s", key->cut->fetch[i].id, key->cut->fetch_name[i]);
    if (!t.failed)
        return t.data;
    tn_text_free(&t);
    return NULL;
}

/* What a form is made for, in words. NULL: out of memory. */
static char *reason_text(const tn_model *m, const tn_compile_key *key) {
    tn_text t;
    tn_text_init(&t, m->heap);
    const tn_cut *cut = key->cut;
    if (key->backend == TN_BACKEND_REFERENCE)
        tn_text_add(&t, "reference");
    else
        tn_text_printf(&t, "-O%d, %s", key->level, tn_isa_name(key->isa));
    tn_text_add(&t, cut ? "" : ": all outputs");
    for (uint32_t i = 0; cut && i < cut->fetches; i++)
        tn_text_printf(&t, "%s%s", i ? ", " : ": for ", cut->fetch_name[i]);
    for (uint32_t i = 0; cut && i < cut->feeds; i++)
        tn_text_printf(&t, "%s%s", i ? ", " : "; fed inside: ", tn_value_name(m->graph, cut->feed[i]));
    bool first = true;
    for (uint32_t i = 0; i < tn_graph_input_count(m->graph) && key->fed; i++)
        if (key->fed[i]) {
            tn_text_printf(&t, "%s%s", first ? "; in place of defaults: " : ", ",
                           tn_value_name(m->graph, tn_graph_input(m->graph, i)));
            first = false;
        }
    if (*key->dims)
        tn_text_printf(&t, "; sizes fixed: %s", key->dims);
    if (*key->disable || *key->passes)
        tn_text_printf(&t, "; passes: %s%s%s", key->passes, *key->disable ? " without " : "", key->disable);
    if (!t.failed)
        return t.data;
    tn_text_free(&t);
    return NULL;
}

tn_compiled *tn_model_compile(tn_model *m, const tn_compile_key *key) {
    char *text = key_text(m, key);
    if (!text)
        return NULL;
    tn_mutex_lock(m->mutex); /* one compilation at a time: a second session waits for the first and shares it */
    tn_compiled *c = NULL;
    for (uint32_t i = 0; i < m->compiled.len && !c; i++)
        if (strcmp(m->compiled.data[i]->key, text) == 0)
            c = m->compiled.data[i];
    if (c) {
        tn_free(m->heap, text);
    } else if (!tn_vec_reserve(m->heap, &m->compiled, 1) || !(c = tn_alloc(m->heap, sizeof *c))) {
        tn_free(m->heap, text);
        c = NULL;
    } else {
        c->key = text;
        c->late = tn_late_cache_create(m->heap);
        c->reason = c->late ? reason_text(m, key) : NULL;
        if (c->reason && tn_compile(m, key, c) == TN_OK) {
            m->compiled.data[m->compiled.len++] = c;
            m->compilations++;
        } else {
            tn_late_cache_destroy(c->late);
            tn_free(m->heap, c->key);
            tn_free(m->heap, c->reason);
            tn_free(m->heap, c);
            c = NULL;
        }
    }
    if (c) {
        c->refs++;
        c->used = ++m->clock;
    }
    tn_mutex_unlock(m->mutex);
    return c;
}

/* --- inputs and outputs --------------------------------------------------------------------------------------------------------------- */

const tn_graph *tn_model_graph(const tn_model *m) {
    return m ? m->graph : NULL;
}
uint32_t tn_model_input_count(const tn_model *m) {
    return m ? tn_graph_input_count(m->graph) : 0;
}
uint32_t tn_model_output_count(const tn_model *m) {
    return m ? tn_graph_output_count(m->graph) : 0;
}
const char *tn_model_input_name(const tn_model *m, uint32_t i) {
    return m ? tn_value_name(m->graph, tn_graph_input(m->graph, i)) : "";
}
const char *tn_model_output_name(const tn_model *m, uint32_t i) {
    return m ? tn_graph_output_name(m->graph, i) : "";
}
bool tn_model_input_has_default(const tn_model *m, uint32_t i) {
    return m && tn_graph_input_default(m->graph, tn_graph_input(m->graph, i)) != NULL;
}
tn_type tn_model_input_type(const tn_model *m, uint32_t i) {
    return m ? tn_value_type(m->graph, tn_graph_input(m->graph, i)) : (tn_type){0};
}

const char *tn_model_describe_input(const tn_model *m, uint32_t i, char *text, size_t size) {
    if (!text)
        return "";
    if (!m) {
        snprintf(text, size, "unknown");
        return text;
    }
    return tn_type_describe(m->graph, tn_model_input_type(m, i), text, size);
}

const char *tn_model_describe_output(const tn_model *m, uint32_t i, char *text, size_t size) {
    if (!text)
        return "";
    if (!m) {
        snprintf(text, size, "unknown");
        return text;
    }
    return tn_type_describe(m->graph, tn_value_type(m->graph, tn_graph_output(m->graph, i)), text, size);
}
