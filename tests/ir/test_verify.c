/* The verifier: for each rule of docs/verifier.md, graphs that break it and nothing before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "ir/graph.h"
#include "support/toy_ops.h"

/* A sound graph with something of everything, and handles to its parts. */
typedef struct sample {
    tn_graph *g;
    tn_value x, y, sum, constant, size, sized, inner, arg, called;
    tn_node sum_node, constant_node, loose_node, size_node, sized_node, tuned_node, open_node, call_node, effect_node,
        block_node;
    tn_region open_region, block_region, function_region, caller_region;
    tn_node function_call; /* inside "caller": calls "callee" */
} sample;

static sample make(void) {
    sample s = {.g = tn_graph_new(NULL, toy_ops())};
    tn_graph *g = s.g;
    assert_non_null(g);
    tn_dim n = tn_dim_symbol(g, "N");
    tn_type vector = tn_type_tensor(g, TN_F32, 1, &n);
    int64_t two = 2;
    tn_tensor *tensor = tn_tensor_create(TN_F32, 1, &two);
    assert_non_null(tensor);

    s.function_region = tn_region_create(g);
    s.arg = tn_region_add_arg(g, s.function_region, vector, NULL);
    assert_int_equal(tn_region_return(g, s.function_region, 1, &s.arg), TN_OK);
    assert_int_equal(tn_graph_add_function(g, "callee", s.function_region), 0);
    tn_attr callee = TN_A_FUNCTION("callee", 0), caller = TN_A_FUNCTION("callee", 1);
    s.caller_region = tn_region_create(g);
    tn_value arg = tn_region_add_arg(g, s.caller_region, vector, NULL);
    tn_graph_insert_at_end(g, s.caller_region);
    s.function_call = toy_node(g, "call", 1, &arg, 1, NULL, 1, &callee);
    tn_value result = tn_node_output(g, s.function_call, 0);
    assert_int_equal(tn_region_return(g, s.caller_region, 1, &result), TN_OK);
    assert_int_equal(tn_graph_add_function(g, "caller", s.caller_region), 1);

    tn_graph_insert_at_end(g, tn_graph_region(g));
    s.x = toy_input(g, "x", TN_F32, 1, &n);
    s.y = toy_input(g, "y", TN_F32, 1, &n);
    s.sum_node = toy_node(g, "pair", 2, (tn_value[]){s.x, s.y}, 1, NULL, 0, NULL);
    s.sum = tn_node_output(g, s.sum_node, 0);
    tn_attr value = TN_A_TENSOR("value", tensor);
    s.constant_node = toy_node(g, "const", 0, NULL, 1, NULL, 1, &value);
    s.constant = tn_node_output(g, s.constant_node, 0);
    s.loose_node = toy_node(g, "loose", 0, NULL, 1, NULL, 1, &value);
    s.size_node = toy_node(g, "size", 1, &s.sum, 1, NULL, 0, NULL);
    s.size = tn_node_output(g, s.size_node, 0);
    tn_dim u = tn_value_dim(g, s.size, 0);
    tn_attr shape = TN_A_DIMS("shape", 1, &u);
    s.sized_node = toy_node(g, "shaped", 0, NULL, 1, NULL, 1, &shape);
    s.sized = tn_node_output(g, s.sized_node, 0);
    tn_attr tuned[] = {TN_A_INT("level", 3), TN_A_STRING("mode", "two", 3)};
    s.tuned_node = toy_node(g, "tuned", 1, &s.sum, 1, NULL, 2, tuned);

    for (int closed = 0; closed < 2; closed++) {
        tn_region region = tn_region_create(g);
        tn_graph_insert_at_end(g, region);
        if (closed) {
            tn_value own = tn_region_add_arg(g, region, vector, NULL);
            toy_node(g, "pair", 2, (tn_value[]){own, own}, 1, NULL, 0, NULL);
        } else {
            s.inner = tn_node_output(g, toy_node(g, "pair", 2, (tn_value[]){s.x, s.sum}, 1, NULL, 0, NULL), 0);
        }
        assert_int_equal(tn_region_return(g, region, 0, NULL), TN_OK);
        tn_graph_insert_at_end(g, tn_graph_region(g));
        tn_node_desc desc = {.op = toy_op(closed ? "block" : "open"), .region_count = 1, .regions = &region};
        tn_node node = tn_graph_add_node(g, &desc);
        assert_int_not_equal(node.id, 0);
        *(closed ? &s.block_node : &s.open_node) = node;
        *(closed ? &s.block_region : &s.open_region) = region;
    }
    s.call_node = toy_node(g, "call", 1, &s.sum, 1, NULL, 1, &caller);
    s.called = tn_node_output(g, s.call_node, 0);
    s.effect_node = toy_node(g, "effect", 1, &s.called, 0, NULL, 0, NULL);
    assert_int_equal(tn_node_add_control(g, s.effect_node, s.sum_node), TN_OK);
    assert_int_equal(tn_graph_add_output(g, s.sum, "sum"), TN_OK);
    assert_int_equal(tn_graph_add_output(g, s.sized, "sized"), TN_OK);
    tn_tensor_destroy(tensor);
    assert_int_equal(tn_graph_check(g), TN_OK);
    return s;
}

#define NODE(handle) (&s->g->node.data[(handle).id])
#define VALUE(handle) (&s->g->value.data[(handle).id])
#define OPERAND(handle, i) (&s->g->operand.data[NODE(handle)->inputs + (i)])
#define REGION(handle) (&s->g->region.data[(handle).id])

/* Puts another value in an input, use lists kept. */
static void rewire(sample *s, tn_node node, uint32_t input, uint32_t value) {
    uint32_t at = NODE(node)->inputs + input;
    tn_operand *o = &s->g->operand.data[at];
    if (o->value) {
        if (o->previous)
            s->g->operand.data[o->previous].next = o->next;
        else
            s->g->value.data[o->value].first_use = o->next;
        if (o->next)
            s->g->operand.data[o->next].previous = o->previous;
        s->g->value.data[o->value].use_count--;
    }
    o->value = value;
    o->previous = o->next = 0;
    if (!value)
        return;
    tn_value_rec *v = &s->g->value.data[value];
    o->next = v->first_use;
    if (v->first_use)
        s->g->operand.data[v->first_use].previous = at;
    v->first_use = at;
    v->use_count++;
}

static void id_type(sample *s) {
    VALUE(s->sum)->type = 9999;
}
static void id_value(sample *s) {
    OPERAND(s->sum_node, 0)->value = 9999;
}
static void id_name(sample *s) {
    NODE(s->sum_node)->name = 9999;
}
static void id_location(sample *s) {
    NODE(s->sum_node)->location = 9999;
}
static void id_range(sample *s) {
    NODE(s->sum_node)->outputs = UINT32_MAX - 1;
}
static void id_region(sample *s) {
    s->g->region_list.data[NODE(s->open_node)->regions] = 9999;
}
static void id_control(sample *s) {
    s->g->control_list.data[NODE(s->effect_node)->control] = 9999;
}
static void id_dim(sample *s) {
    s->g->dim_list.data[s->g->type.data[VALUE(s->x)->type].dims] = (tn_dim){9999};
}
static void id_function(sample *s) {
    s->g->function.data[0].region = 9999;
}
static void id_role(sample *s) {
    NODE(s->sum_node)->role = 77;
}

static void list_previous(sample *s) {
    NODE(s->size_node)->previous = s->sum_node.id;
}
static void list_cycle(sample *s) {
    NODE(s->size_node)->next = s->sum_node.id;
}
static void list_region(sample *s) {
    NODE(s->size_node)->region = s->open_region.id;
}
static void list_last(sample *s) {
    REGION(tn_graph_region(s->g))->last = s->sum_node.id;
}
static void list_order(sample *s) {
    NODE(s->sized_node)->order = NODE(s->sum_node)->order;
}
static void list_lost(sample *s) {
    NODE((tn_node){NODE(s->tuned_node)->previous})->next = NODE(s->tuned_node)->next;
    NODE((tn_node){NODE(s->tuned_node)->next})->previous = NODE(s->tuned_node)->previous;
}

static void region_dead(sample *s) {
    REGION(s->open_region)->alive = false;
}
static void region_owner(sample *s) {
    REGION(s->open_region)->owner = s->sum_node.id;
}
static void region_twice(sample *s) {
    s->g->region_list.data[NODE(s->block_node)->regions] = s->open_region.id;
    REGION(s->block_region)->alive = false;
}
static void region_orphan(sample *s) {
    assert_int_not_equal(tn_region_create(s->g).id, 0);
}
static void region_main_owned(sample *s) {
    REGION(tn_graph_region(s->g))->owner = s->open_node.id;
}

static void return_missing(sample *s) {
    uint32_t last = REGION(s->open_region)->last, before = NODE((tn_node){last})->previous;
    REGION(s->open_region)->last = before;
    NODE((tn_node){before})->next = 0;
    s->g->node.data[last].op = NULL;
}
static void return_none(sample *s) {
    tn_region_rec *r = REGION(s->function_region);
    rewire(s, (tn_node){r->last}, 0, 0);
    s->g->node.data[r->last].op = NULL;
    r->first = r->last = 0;
}
static void return_early(sample *s) {
    NODE(s->effect_node)->op = &tn_op_return;
}

static void arity_inputs(sample *s) {
    rewire(s, s->sum_node, 1, 0);
    NODE(s->sum_node)->input_count = 1;
}
static void arity_absent(sample *s) {
    rewire(s, s->sum_node, 1, 0);
}
static void arity_op(sample *s) {
    NODE(s->open_node)->op = toy_op("effect");
}
static void arity_outputs(sample *s) {
    NODE(s->size_node)->op = toy_op("effect"); /* now has an output too many */
}

static tn_attr *attr_of(sample *s, tn_node node, uint32_t i) {
    return &NODE(node)->attrs[i];
}
static void attr_unknown(sample *s) {
    attr_of(s, s->tuned_node, 1)->key = "depth";
    attr_of(s, s->tuned_node, 1)->name = tn_strings_add(&s->g->strings, "depth", 5);
}
static void attr_kind(sample *s) {
    attr_of(s, s->tuned_node, 0)->kind = TN_ATTR_FLOAT;
}
static void attr_missing(sample *s) {
    NODE(s->tuned_node)->attrs++;
    NODE(s->tuned_node)->attr_count--;
}
static void attr_allowed(sample *s) {
    attr_of(s, s->tuned_node, 1)->as.s = (tn_string){"ten", 3};
}
static void attr_twice(sample *s) {
    *attr_of(s, s->tuned_node, 1) = *attr_of(s, s->tuned_node, 0);
}
static void attr_function(sample *s) {
    attr_of(s, s->call_node, 0)->as.i = 7;
}
static void attr_dim(sample *s) {
    static const tn_dim wrong = {9999};
    attr_of(s, s->sized_node, 0)->as.dims = &wrong;
}
static void attr_required_constant(sample *s) {
    NODE(s->constant_node)->attr_count = 0;
}

static void value_producer(sample *s) {
    VALUE(s->sum)->producer = s->size_node.id;
}
static void value_index(sample *s) {
    VALUE(s->sum)->index = 1;
}
static void value_dead(sample *s) {
    VALUE(s->called)->alive = false;
}
static void value_arg(sample *s) {
    VALUE(s->x)->region = s->open_region.id;
}
static void value_lost(sample *s) {
    REGION(tn_graph_region(s->g))->args.len = 1;
}

static void use_count(sample *s) {
    VALUE(s->sum)->use_count++;
}
static void use_first(sample *s) {
    tn_value_rec *v = VALUE(s->sum);
    v->first_use = s->g->operand.data[v->first_use].next;
    s->g->operand.data[v->first_use].previous = 0;
    v->use_count--;
}
static void use_value(sample *s) {
    OPERAND(s->size_node, 0)->value = s->x.id;
}
static void use_node(sample *s) {
    OPERAND(s->size_node, 0)->node = s->sum_node.id;
}
static void use_cycle(sample *s) {
    uint32_t first = VALUE(s->sum)->first_use;
    s->g->operand.data[s->g->operand.data[first].next].next = first;
}

static void dead_input(sample *s) {
    tn_value v = tn_node_output(s->g, toy_node(s->g, "size", 1, &s->x, 1, NULL, 0, NULL), 0);
    assert_int_equal(tn_node_remove(s->g, tn_value_producer(s->g, v)), TN_OK);
    rewire(s, s->tuned_node, 0, v.id);
}

static void order_later(sample *s) {
    rewire(s, s->sum_node, 0, s->called.id);
}
static void order_self(sample *s) {
    rewire(s, s->sum_node, 0, s->sum.id);
}
static void order_inner(sample *s) {
    rewire(s, s->effect_node, 0, s->inner.id);
}
static void order_function_value(sample *s) {
    rewire(s, s->sum_node, 0, s->arg.id);
}

static void closed_block(sample *s) {
    rewire(s, (tn_node){REGION(s->block_region)->first}, 0, s->x.id);
}
static void closed_function(sample *s) {
    rewire(s, s->function_call, 0, s->x.id);
}

static void function_name(sample *s) {
    s->g->function.data[0].name = 0;
}
static void function_names(sample *s) {
    s->g->function.data[0].name = s->g->function.data[1].name;
}
static void function_cycle(sample *s) {
    attr_of(s, s->function_call, 0)->as.i = 1;
}

static void type_dtype(sample *s) {
    tn_dim n = tn_dim_symbol(s->g, "N");
    VALUE(s->sum)->type = tn_type_tensor(s->g, TN_I8, 1, &n).id;
}
static void type_rank(sample *s) {
    VALUE(s->called)->type = tn_type_tensor(s->g, TN_F32, 0, NULL).id;
}
static void type_refused(sample *s) {
    static const tn_dim dims[TN_MAX_RANK + 1];
    tn_dim *many = test_malloc(sizeof dims);
    for (int i = 0; i <= TN_MAX_RANK; i++)
        many[i] = tn_dim_symbol(s->g, "N");
    attr_of(s, s->sized_node, 0)->as.dims = tn_arena_copy(&s->g->arena, many, sizeof dims);
    attr_of(s, s->sized_node, 0)->count = TN_MAX_RANK + 1;
    test_free(many);
}

static void symbol_attr(sample *s) {
    tn_dim m = tn_dim_symbol(s->g, "M");
    attr_of(s, s->sized_node, 0)->as.dims = tn_arena_copy(&s->g->arena, &m, sizeof m);
}
static void symbol_output(sample *s) {
    tn_dim m = tn_dim_add(s->g, tn_dim_symbol(s->g, "M"), tn_dim_const(s->g, 1));
    VALUE(s->sum)->type = tn_type_tensor(s->g, TN_F32, 1, &m).id;
}
static void symbol_before(sample *s) {
    assert_int_equal(tn_node_move_before(s->g, s->sized_node, s->size_node), TN_OK);
}
static void symbol_inner(sample *s) {
    tn_dim u = tn_dim_fresh(s->g, 0, 5), twice = tn_dim_mul(s->g, u, tn_dim_const(s->g, 2));
    VALUE(s->inner)->type = tn_type_tensor(s->g, TN_F32, 1, &u).id;
    VALUE(s->called)->type = tn_type_tensor(s->g, TN_F32, 1, &twice).id;
}

static void name_empty(sample *s) {
    VALUE(s->x)->name = 0;
}
static void name_twice(sample *s) {
    VALUE(s->x)->name = VALUE(s->y)->name;
}
static void name_output(sample *s) {
    s->g->output_name.data[1] = s->g->output_name.data[0];
}
static void name_output_empty(sample *s) {
    s->g->output_name.data[1] = 0;
}
static void name_count(sample *s) {
    s->g->output_name.len--;
}

static void control_dead(sample *s) {
    tn_node node = toy_node(s->g, "size", 1, &s->x, 1, NULL, 0, NULL);
    assert_int_equal(tn_node_remove(s->g, node), TN_OK);
    s->g->control_list.data[NODE(s->effect_node)->control] = node.id;
}
static void control_later(sample *s) {
    s->g->control_list.data[NODE(s->effect_node)->control] = s->effect_node.id;
}
static void control_inner(sample *s) {
    s->g->control_list.data[NODE(s->effect_node)->control] = REGION(s->open_region)->first;
}

static void constant_bare(sample *s) {
    NODE(s->loose_node)->attr_count = 0;
}

static void set_default(sample *s, tn_dtype dtype, int rank) {
    int64_t dims[] = {2, 2};
    tn_tensor *t = tn_tensor_create(dtype, rank, dims);
    assert_int_equal(tn_graph_set_input_default(s->g, s->x, t), TN_OK);
    tn_tensor_destroy(t);
}
static void default_dtype(sample *s) {
    set_default(s, TN_I8, 1);
}
static void default_rank(sample *s) {
    set_default(s, TN_F32, 2);
}
static void default_value(sample *s) {
    set_default(s, TN_F32, 1);
    s->g->input_default.data[0].value = s->sum.id;
}

#define CASE(rule, function) \
    { rule, #function, function }
static const struct {
    int rule;
    const char *name;
    void (*spoil)(sample *s);
} cases[] = {
    CASE(1, id_type),
    CASE(1, id_value),
    CASE(1, id_name),
    CASE(1, id_location),
    CASE(1, id_range),
    CASE(1, id_region),
    CASE(1, id_control),
    CASE(1, id_dim),
    CASE(1, id_function),
    CASE(1, id_role),
    CASE(2, list_previous),
    CASE(2, list_cycle),
    CASE(2, list_region),
    CASE(2, list_last),
    CASE(2, list_order),
    CASE(2, list_lost),
    CASE(3, region_dead),
    CASE(3, region_owner),
    CASE(3, region_twice),
    CASE(3, region_orphan),
    CASE(3, region_main_owned),
    CASE(4, return_missing),
    CASE(4, return_none),
    CASE(4, return_early),
    CASE(5, arity_inputs),
    CASE(5, arity_absent),
    CASE(5, arity_op),
    CASE(5, arity_outputs),
    CASE(6, attr_unknown),
    CASE(6, attr_kind),
    CASE(6, attr_missing),
    CASE(6, attr_allowed),
    CASE(6, attr_twice),
    CASE(6, attr_function),
    CASE(6, attr_dim),
    CASE(6, attr_required_constant),
    CASE(7, value_producer),
    CASE(7, value_index),
    CASE(7, value_dead),
    CASE(7, value_arg),
    CASE(7, value_lost),
    CASE(8, use_count),
    CASE(8, use_first),
    CASE(8, use_value),
    CASE(8, use_node),
    CASE(8, use_cycle),
    CASE(9, dead_input),
    CASE(10, order_later),
    CASE(10, order_self),
    CASE(10, order_inner),
    CASE(10, order_function_value),
    CASE(11, closed_block),
    CASE(11, closed_function),
    CASE(12, function_name),
    CASE(12, function_names),
    CASE(12, function_cycle),
    CASE(13, type_dtype),
    CASE(13, type_rank),
    CASE(13, type_refused),
    CASE(14, symbol_attr),
    CASE(14, symbol_output),
    CASE(14, symbol_before),
    CASE(14, symbol_inner),
    CASE(15, name_empty),
    CASE(15, name_twice),
    CASE(15, name_output),
    CASE(15, name_output_empty),
    CASE(15, name_count),
    CASE(16, control_dead),
    CASE(16, control_later),
    CASE(16, control_inner),
    CASE(17, constant_bare),
    CASE(18, default_dtype),
    CASE(18, default_rank),
    CASE(18, default_value),
};

static void each_rule(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sample s = make();
        char expected[32];
        snprintf(expected, sizeof expected, "rule %d:", cases[i].rule);
        cases[i].spoil(&s);
        tn_error_clear();
        tn_status status = tn_graph_verify(s.g);
        if (status != TN_ERR_MODEL || strncmp(tn_error_what(), expected, strlen(expected)) != 0) {
            print_error("%s: expected %s, got %s: %s\n", cases[i].name, expected, tn_status_name(status),
                        tn_error_message());
            wrong++;
        }
        tn_graph_destroy(s.g);
    }
    assert_int_equal(wrong, 0);
}

static void sound(void **state) {
    (void)state;
    sample s = make();
    if (tn_graph_verify(s.g) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_graph_freeze(s.g);
    assert_int_equal(tn_graph_verify(s.g), TN_OK);
    uint32_t dims = s.g->dims.expr.len, nodes = s.g->node.len;
    assert_int_equal(tn_graph_verify(s.g), TN_OK);
    assert_int_equal(s.g->dims.expr.len, dims); /* looking changes nothing */
    assert_int_equal(s.g->node.len, nodes);
    tn_graph_destroy(s.g);
}

/* One value may be put out twice under one name, in the text form too. */
static void output_twice(void **state) {
    (void)state;
    static const char text[] = "tenon 1\ngraph (%1 \"x\": f32[2]) -> (\"y\", \"y\") {\n  %2 \"y\" = neg(%1) : f32[2]\n"
                               "  return(%2, %2)\n}\n";
    tn_graph *g = tn_graph_parse(NULL, text, sizeof text - 1);
    if (!g || tn_graph_verify(g) != TN_OK)
        fail_msg("%s", tn_error_message());
    char *again = tn_graph_print(g);
    assert_string_equal(again, text);
    tn_graph_free_text(g, again);
    tn_graph_destroy(g);
}

static void sticky_and_null(void **state) {
    (void)state;
    assert_int_equal(tn_graph_verify(NULL), TN_ERR_USAGE);
    sample s = make();
    assert_int_equal(tn_graph_add_output(s.g, (tn_value){0}, "z"), TN_ERR_USAGE);
    assert_int_equal(tn_graph_verify(s.g), TN_ERR_USAGE); /* the sticky error */
    tn_graph_destroy(s.g);
}

/* Every allocation of the verifier may fail: an error, and nothing is lost. */
static void out_of_memory(void **state) {
    (void)state;
    tn_heap *heap = tn_heap_create(NULL);
    tn_graph *g = tn_graph_new(heap, toy_ops());
    assert_non_null(g);
    tn_dim n = tn_dim_symbol(g, "N");
    tn_value x = toy_input(g, "x", TN_F32, 1, &n);
    tn_value sum = tn_node_output(g, toy_node(g, "pair", 2, (tn_value[]){x, x}, 1, NULL, 0, NULL), 0);
    assert_int_equal(tn_graph_add_output(g, sum, "sum"), TN_OK);
    assert_int_equal(tn_graph_verify(g), TN_OK);
    size_t before = tn_heap_in_use(heap);
    for (uint64_t k = 1;; k++) {
        tn_heap_fail_at(heap, k, false);
        tn_status status = tn_graph_verify(g);
        tn_heap_fail_at(heap, 0, false);
        assert_int_equal(tn_heap_in_use(heap), before);
        if (status == TN_OK && k > 3)
            break;
        assert_int_equal(status, TN_ERR_MEMORY);
        assert_true(k < 5000);
    }
    tn_graph_destroy(g);
    assert_int_equal(tn_heap_in_use(heap), 0);
    tn_heap_destroy(heap);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound),           cmocka_unit_test(output_twice),  cmocka_unit_test(each_rule),
        cmocka_unit_test(sticky_and_null), cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
