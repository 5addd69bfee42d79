/* Rows B1 and V1. B1: in every plan of the shared models, graphs and cases no two values that live together lie in one another's memory, and
   what nobody reads ends where it is made: checked from the instructions alone, not by what made the plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <tenon/tenon.h>

#include "lower/plan.h"
#include "runtime/model.h"
#include "support/model_runs.h"

/* What instructions do with a slot, in their order. */
typedef struct use {
    int32_t made, read; /* the first that writes it, the last that reads it; -1: none */
    int32_t written;    /* the last that writes it */
    bool fetched;
} use;

static void wrote(use *u, int32_t at) {
    u->made = u->made < 0 ? at : u->made;
    u->written = at;
}

/* Who uses a slot that moves with the trips of a loop uses those that it lies in. What a trip makes, the next one or what follows the
   loop reads, so it lives from the loop's begin to its end. */
static void note_loops(const tn_plan *p, use *of) {
    for (uint32_t i = 0; i < p->code.len; i++) {
        if (p->code.data[i].op != TN_DO_ENTER)
            continue;
        const tn_loop *loop = &p->loop.data[p->code.data[i].a];
        if (loop->limit != UINT32_MAX)
            of[p->view.data[loop->limit].slot].read = (int32_t)i;
        int32_t enter = (int32_t)i, end = (int32_t)p->code.data[i].b - 1;
        for (uint32_t k = loop->first; k < loop->first + loop->count; k++) {
            const tn_moving *m = &p->moving.data[k];
            uint32_t in[2] = {m->from, m->other};
            for (int j = 0; j < 2; j++) {
                use *u = &of[in[j]];
                if (m->kind != TN_MOVING_CARRIED && of[m->slot].made >= 0) {
                    u->made = u->made < 0 || u->made > enter ? enter : u->made;
                    u->written = u->written < end ? end : u->written;
                }
                if (m->kind != TN_MOVING_ROW || of[m->slot].made < 0)
                    u->read = u->read < end ? end : u->read;
            }
        }
    }
    for (bool more = true; more;) {
        more = false;
        for (uint32_t k = 0; k < p->moving.len; k++) {
            const tn_moving *m = &p->moving.data[k];
            for (int j = 0; j < 2; j++) {
                use *u = &of[j ? m->other : m->from];
                more = more || u->read < of[m->slot].read;
                u->read = u->read < of[m->slot].read ? of[m->slot].read : u->read;
            }
        }
    }
}

static void note_uses(const tn_plan *p, use *of) {
    for (uint32_t i = 0; i < p->slot.len; i++)
        of[i] = (use){-1, -1, -1, p->slot.data[i].fetched};
    for (int32_t at = 0; at < (int32_t)p->code.len; at++) {
        const tn_instruction in = p->code.data[at];
        if (in.op == TN_DO_CALL) {
            const tn_kernel *k = &p->kernel.data[in.a];
            for (int i = 0; i < k->operands; i++)
                if (i != 1 || !k->packed_only)
                    of[k->operand[i].slot].read = at;
            for (int i = 0; i < k->outputs; i++)
                wrote(&of[k->output[i].slot], at);
        } else if (in.op == TN_DO_HOST) {
            const tn_host_call *h = &p->host.data[in.a];
            for (uint32_t i = 0; i < h->input_count; i++)
                if (p->view_list.data[h->inputs + i] != UINT32_MAX)
                    of[p->view.data[p->view_list.data[h->inputs + i]].slot].read = at;
            for (uint32_t i = 0; i < h->outer_count; i++)
                of[p->view.data[p->view_list.data[h->outer + 2 * i + 1]].slot].read = at;
            for (uint32_t i = 0; i < h->output_count; i++)
                wrote(&of[p->slot_list.data[h->outputs + i]], at);
        } else if (in.op == TN_DO_BRANCH && in.a != UINT32_MAX)
            of[p->view.data[in.a].slot].read = at;
    }
    note_loops(p, of);
    /* a trip of a loop follows another: what comes into it is read as long as it runs, what goes round in it lives all the time */
    for (int32_t at = (int32_t)p->code.len - 1; at >= 0; at--) {
        const tn_instruction in = p->code.data[at];
        for (uint32_t i = 0; in.op == TN_DO_LOOP && i < p->slot.len; i++)
            if (of[i].made >= 0 && of[i].made < (int32_t)in.b && of[i].read >= (int32_t)in.b && of[i].read < at)
                of[i].read = at;
    }
}

/* Whether slot `a` is written over `b` by the instruction that reads `b` last. */
static bool in_place(const tn_plan *p, uint32_t a, uint32_t b, int32_t made, int32_t end) {
    return p->slot.data[a].over == b + 1 && made == end;
}

/* The fork that an instruction is in a part of; -1: none. *part: which. */
static int32_t fork_of(const tn_plan *p, int32_t at, uint32_t *part) {
    for (int32_t i = 0; i < (int32_t)p->code.len && i < at; i++) {
        if (p->code.data[i].op != TN_DO_FORK || at >= (int32_t)p->code.data[i].b)
            continue;
        const tn_fork *fork = &p->fork.data[p->code.data[i].a];
        for (*part = 0; at >= (int32_t)fork->start[*part + 1];)
            ++*part;
        return i;
    }
    return -1;
}

/* Whether two lifetimes are in parts that may run at once. */
static bool at_once(const tn_plan *p, const tn_lifetime *a, const tn_lifetime *b) {
    if (!p->fork.len)
        return false;
    const int32_t ends[2][2] = {{a->first, a->last}, {b->first, b->last}};
    for (int i = 0; i < 4; i++) {
        uint32_t x, y;
        int32_t fork = fork_of(p, ends[0][i & 1], &x);
        if (fork >= 0 && fork == fork_of(p, ends[1][i >> 1], &y) && x != y)
            return true;
    }
    return false;
}

enum { MOST = 20000 };

/* The finding in a plan whose dims have the given values, or NULL. */
static const char *check_plan(const tn_plan *p, const tn_dim_env *env, uint32_t *slots, char *text, size_t size) {
    static tn_lifetime life[MOST], live[MOST];
    static uint32_t which[MOST];
    use *of = calloc(p->slot.len + 1, sizeof *of);
    uint32_t *place = malloc((p->slot.len + 1) * sizeof *place);
    const char *finding = NULL;
    note_uses(p, of);
    for (uint32_t i = 0; i < p->slot.len && !finding; i++) {
        const tn_slot *s = &p->slot.data[i];
        int32_t end = of[i].read > of[i].written ? of[i].read : of[i].written;
        if (s->kind != TN_SLOT_ARENA || of[i].made < 0)
            continue;
        if (s->first > of[i].made || (!s->fetched && s->last < end))
            snprintf(text, size, "slot %u is used at %d to %d, and lives from %d to %d", i, of[i].made, end, s->first,
                     s->last);
        else if (!s->fetched && of[i].read < 0 && s->last > of[i].written)
            snprintf(text, size, "nobody reads slot %u, made at %d; it lives to %d", i, of[i].written, s->last);
        else
            continue;
        finding = text;
    }
    for (uint32_t segment = 0; segment <= p->segments && !finding; segment++) {
        uint32_t n = 0;
        memset(place, 0xff, (p->slot.len + 1) * sizeof *place);
        for (uint32_t i = 0; i < p->slot.len && n < MOST; i++) {
            const tn_slot *s = &p->slot.data[i];
            int64_t bytes;
            if (s->kind != TN_SLOT_ARENA || s->segment != segment || s->fetched || !tn_plan_lifetime(p, i, &life[n]) ||
                !tn_dim_eval(&p->graph->dims, env, p->size.data[s->bytes], &bytes) || bytes < 0)
                continue;
            life[n].bytes = (size_t)bytes;
            which[n++] = i;
        }
        size_t total;
        assert_int_equal(tn_planner_place(NULL, n, life, &total), TN_OK);
        *slots += n;
        /* every slot lies where its home does */
        for (uint32_t i = 0; i < n; i++)
            place[which[i]] = i;
        uint32_t all = 0;
        for (uint32_t i = 0; i < p->slot.len && all < MOST; i++) {
            const tn_slot *s = &p->slot.data[i];
            uint32_t home = s->kind == TN_SLOT_ARENA && s->segment == segment && !s->fetched && of[i].made >= 0
                                ? tn_plan_home(p, i)
                                : UINT32_MAX;
            if (home == UINT32_MAX || place[home] == UINT32_MAX || !life[place[home]].bytes)
                continue;
            live[all++] = (tn_lifetime){of[i].made, of[i].read > of[i].written ? of[i].read : of[i].written,
                                        life[place[home]].bytes, life[place[home]].offset};
            which[all - 1] = i;
        }
        for (uint32_t i = 0; i < all && !finding; i++)
            for (uint32_t j = 0; j < i && !finding; j++)
                if (live[i].offset < live[j].offset + live[j].bytes &&
                    live[j].offset < live[i].offset + live[i].bytes &&
                    ((live[i].first <= live[j].last && live[j].first <= live[i].last) ||
                     at_once(p, &live[i], &live[j])) &&
                    !in_place(p, which[i], which[j], live[i].first, live[j].last) &&
                    !in_place(p, which[j], which[i], live[j].first, live[i].last)) {
                    snprintf(text, size, "slots %u and %u live together and share memory", which[i], which[j]);
                    finding = text;
                }
    }
    free(place);
    free(of);
    return finding;
}

static void bind_sizes(const tn_graph *g, tn_dim_env *env, const run_inputs *in) {
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++) {
        tn_value v = tn_graph_input(g, i);
        const tn_tensor *t = NULL;
        for (uint32_t k = 0; k < in->count && !t; k++)
            if (!strcmp(in->binding[k].name, tn_value_name(g, v)))
                t = in->binding[k].tensor ? in->binding[k].tensor : tn_object_tensor(in->binding[k].object);
        for (int d = 0; d < tn_value_rank(g, v); d++)
            tn_dim_env_match(&g->dims, env, tn_value_dim(g, v, d),
                             t && d < tn_tensor_rank(t) ? tn_tensor_dims(t)[d] : 2);
    }
}

static void check_folder(const char *folder, const char *name, uint32_t *plans, uint32_t *slots, uint32_t *wrong) {
    char within[512], path[4096], text[300];
    snprintf(within, sizeof within, "%s/%s/model.onnx", folder, name);
    if (!shared_path(within, path, sizeof path))
        return;
    tn_model *m = tn_model_load(path, NULL);
    for (int level = 0; level < 3 && m; level += 2) {
        const tn_compile_key key = {
            .backend = TN_BACKEND_CPU, .level = level, .disable = "", .passes = "", .dump = "", .dims = ""};
        tn_compiled *c = tn_model_compile(m, &key);
        if (!c)
            continue;
        tn_dim_env env;
        run_inputs in = {0};
        assert_true(tn_dim_env_init(&env, NULL, &c->plan->graph->dims));
        *strrchr(path, '/') = 0;
        if (strcmp(folder, "cases") != 0) /* whose inputs are wrong on purpose */
            run_inputs_read(m, path, 0, &in);
        path[strlen(path)] = '/';
        bind_sizes(c->plan->graph, &env, &in);
        const char *finding = check_plan(c->plan, &env, slots, text, sizeof text);
        if (finding) {
            fprintf(stderr, "%s/%s, -O%d: %s\n", folder, name, level, finding);
            ++*wrong;
        }
        ++*plans;
        run_inputs_free(&in);
        tn_dim_env_free(&env);
        tn_model_release(m, c);
    }
    tn_model_destroy(m);
}

static void test_b1_all_plans(void **state) {
    (void)state;
    static const char *const folders[] = {"models", "worked-examples", "cases", "onnx-suite/node"};
    uint32_t plans = 0, slots = 0, wrong = 0, here = 0;
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
        char **names = shared_models(folders[f]);
        for (uint32_t i = 0; names[i]; i += f < 3 || run_full() ? 1 : 5) {
            check_folder(folders[f], names[i], &plans, &slots, &wrong);
            here++;
        }
        shared_free_names(names);
    }
    print_message("%u plans, %u values\n", plans, slots);
    assert_int_equal(wrong, 0);
    assert_true(!here || (plans > 800 && slots > 10000));
}

/* The check finds what it is there for. */
static void test_b1_finds(void **state) {
    (void)state;
    char path[4096], text[300];
    if (!shared_path("models/mnist-pytorch/model.onnx", path, sizeof path))
        return;
    tn_model *m = tn_model_load(path, NULL);
    const tn_compile_key key = {
        .backend = TN_BACKEND_CPU, .level = 2, .disable = "", .passes = "", .dump = "", .dims = ""};
    tn_compiled *c = tn_model_compile(m, &key);
    assert_non_null(c);
    tn_plan *p = (tn_plan *)c->plan;
    tn_dim_env env;
    run_inputs none = {0};
    uint32_t slots = 0, first = 0;
    assert_true(tn_dim_env_init(&env, NULL, &p->graph->dims));
    bind_sizes(p->graph, &env, &none);
    assert_null(check_plan(p, &env, &slots, text, sizeof text));
    while (p->slot.data[first].kind != TN_SLOT_ARENA || p->slot.data[first].fetched)
        first++;
    tn_slot *s = &p->slot.data[first];
    int32_t last = s->last;
    s->last = s->first; /* ends before it is read */
    assert_non_null(check_plan(p, &env, &slots, text, sizeof text));
    s->last = last;
    assert_null(check_plan(p, &env, &slots, text, sizeof text));
    for (uint32_t i = 0; i < p->slot.len; i++) /* memory that is another's too early */
        p->slot.data[i].until = p->slot.data[i].first;
    assert_non_null(check_plan(p, &env, &slots, text, sizeof text));
    assert_non_null(strstr(text, "live together"));
    tn_dim_env_free(&env);
    tn_model_release(m, c);
    tn_model_destroy(m);
}

/* --- V1: one line for convolution, norm and ReLU, naming the three ---------------------------------------------------------------------------- */

typedef struct seen {
    uint32_t kernels, named;
} seen;

static void look(void *user, const tn_profile_event *e) {
    seen *s = user;
    s->kernels += e->kernels;
    for (int i = 1; i <= 2; i++) {
        char names[3][16];
        snprintf(names[0], sizeof names[0], "conv%d", i);
        snprintf(names[1], sizeof names[1], "bn%d", i);
        snprintf(names[2], sizeof names[2], "relu%d", i);
        s->named += strstr(e->origin, names[0]) && strstr(e->origin, names[1]) && strstr(e->origin, names[2]) &&
                    e->seconds > 0 && e->bytes > 0 && e->operations > 0;
    }
}

static void test_v1_one_line(void **state) {
    (void)state;
    char path[4096];
    if (!shared_path("worked-examples/W06-conv-bn-relu/model.onnx", path, sizeof path))
        return;
    tn_model *m = tn_model_load(path, NULL);
    tn_session *s = tn_session_create(m, TN_OPTIONS(tn_session_options, .threads = 1));
    run_inputs in = {0};
    assert_true(run_inputs_fill(m, 1, 1, NULL, &in));
    for (int time = 0; time < 2; time++) { /* said once, and again */
        seen counts = {0};
        tn_tensor *y = NULL;
        const tn_run_options how = {.size = sizeof how, .profile = look, .profile_user = &counts};
        assert_int_equal(tn_session_run_with(s, in.count, in.binding, 1,
                                             &(tn_output){.name = tn_model_output_name(m, 0), .tensor = &y}, &how),
                         TN_OK);
        assert_int_equal(counts.kernels, 2);
        assert_int_equal(counts.named, 2);
        tn_tensor_destroy(y);
    }
    run_inputs_free(&in);
    tn_session_destroy(s);
    tn_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_b1_all_plans), cmocka_unit_test(test_b1_finds),
                                       cmocka_unit_test(test_v1_one_line)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
