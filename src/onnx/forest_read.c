/* Ensembles of trees from the attributes of TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "onnx/forest.h"

/* --- lists -------------------------------------------------------------------------------------------------------------------------- */

/* A list of exactly `count` integers. */
static tn_status ints(tn_expand *x, const char *name, int64_t count, const int64_t **out) {
    int64_t n = tn_expand_ints(x, name, out);
    TN_RULE(x, n == count, "'%s' has %" PRId64 " entries, %" PRId64 " are needed", name, n, count);
    return TN_OK;
}

/* Numbers from a list of floats or a tensor of f32, f64 or f16; *count: as many as there are, or -1 to be told. */
static tn_status numbers(tn_expand *x, const char *list, const char *tensor, int64_t *count, double **out, bool *wide) {
    const float *floats = NULL;
    int64_t n = list ? tn_expand_floats(x, list, &floats) : 0;
    tn_tensor *t = tn_expand_tensor(x, tensor);
    TN_RULE(x, !n || !t, "both '%s' and '%s' are given", list, tensor);
    if (t) {
        tn_dtype dtype = (tn_dtype)t->dtype;
        TN_RULE(x, t->rank <= 1 && (dtype == TN_F32 || dtype == TN_F64 || dtype == TN_F16),
                "'%s' must be a list of f32, f64 or f16", tensor);
        n = t->count;
        *wide = *wide || dtype == TN_F64;
    }
    TN_RULE(x, *count < 0 || n == *count, "'%s' has %" PRId64 " entries, %" PRId64 " are needed", t ? tensor : list, n,
            *count);
    *count = n;
    *out = tn_expand_alloc(x, (size_t)n, sizeof **out);
    if (!*out)
        return tn_error_status();
    for (int64_t i = 0; i < n; i++)
        (*out)[i] = t ? tn_tensor_get_f64(t, i) : (double)floats[i];
    return TN_OK;
}

/* Where each of `count` groups begins, from how many entries each has in first[1...]. */
static void add_up(int64_t count, int64_t *first) {
    for (int64_t i = 0; i < count; i++)
        first[i + 1] += first[i];
}

/* --- nodes by tree and number ------------------------------------------------------------------------------------------------------- */

typedef struct place {
    int64_t tree, node, index;
} place;

static int compare_places(const void *a, const void *b) {
    const place *p = a, *q = b;
    if (p->tree != q->tree)
        return p->tree < q->tree ? -1 : 1;
    return p->node < q->node ? -1 : p->node > q->node;
}

static int64_t find_place(const place *places, int64_t count, int64_t tree, int64_t node) {
    place key = {tree, node, 0};
    const place *found = bsearch(&key, places, (size_t)count, sizeof *places, compare_places);
    return found ? found->index : -1;
}

static tn_status make_places(tn_expand *x, int64_t count, const int64_t *tree, const int64_t *node, place **out) {
    place *places = *out = tn_expand_alloc(x, (size_t)count, sizeof *places);
    if (!places)
        return tn_error_status();
    for (int64_t i = 0; i < count; i++)
        places[i] = (place){tree[i], node[i], i};
    qsort(places, (size_t)count, sizeof *places, compare_places);
    for (int64_t i = 1; i < count; i++)
        TN_RULE(x, compare_places(&places[i - 1], &places[i]) != 0,
                "node %" PRId64 " of tree %" PRId64 " is given twice", places[i].node, places[i].tree);
    return TN_OK;
}

static tn_status read_modes(tn_expand *x, tn_forest *f) {
    static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
    const tn_string *texts;
    uint32_t n = tn_expand_strings(x, "nodes_modes", &texts);
    TN_RULE(x, n == f->nodes, "'nodes_modes' has %u entries, %" PRId64 " are needed", (unsigned)n, f->nodes);
    f->mode = tn_expand_alloc(x, n, 1);
    if (!f->mode)
        return tn_error_status();
    for (uint32_t i = 0; i < n; i++) {
        uint8_t m = 0;
        while (m < 8 && (m == TN_FOREST_MEMBER || strlen(names[m]) != texts[i].length ||
                         memcmp(names[m], texts[i].data, texts[i].length) != 0))
            m++;
        TN_RULE(x, m < 8, "'nodes_modes' has the entry '%.*s'", (int)(texts[i].length < 40 ? texts[i].length : 40),
                texts[i].data);
        f->mode[i] = m;
    }
    return TN_OK;
}

/* Whether a node that decides is reached from none that is no node's child: such nodes form a circle, or hang from one. */
static tn_status check_circles(tn_expand *x, const tn_forest *f, const bool *child) {
    bool *reached = tn_expand_alloc(x, (size_t)f->nodes, sizeof *reached);
    int64_t *open = tn_expand_alloc(x, (size_t)f->nodes * 3, sizeof *open), count = 0;
    if (!reached || !open)
        return tn_error_status();
    for (int64_t i = 0; i < f->nodes; i++)
        if (!child[i])
            open[count++] = i;
    while (count > 0) {
        int64_t i = open[--count];
        if (reached[i] || f->mode[i] == TN_FOREST_LEAF)
            continue;
        reached[i] = true;
        if (f->yes[i] >= 0)
            open[count++] = f->yes[i];
        if (f->no[i] >= 0)
            open[count++] = f->no[i];
    }
    for (int64_t i = 0; i < f->nodes; i++)
        TN_RULE(x, reached[i] || f->mode[i] == TN_FOREST_LEAF, "entry %" PRId64 " of the nodes is part of a circle", i);
    return TN_OK;
}

/* A tree's root is the first node listed that is no node's child. */
static tn_status find_roots(tn_expand *x, tn_forest *f, const place *places) {
    bool *child = tn_expand_alloc(x, (size_t)f->nodes, sizeof *child);
    f->roots = tn_expand_alloc(x, (size_t)f->nodes, sizeof *f->roots);
    if (!child || !f->roots)
        return tn_error_status();
    for (int64_t i = 0; i < f->nodes; i++)
        if (f->mode[i] != TN_FOREST_LEAF) {
            child[f->yes[i] < 0 ? ~f->yes[i] : f->yes[i]] = true;
            child[f->no[i] < 0 ? ~f->no[i] : f->no[i]] = true;
        }
    for (int64_t i = 0, end; i < f->nodes; i = end) {
        int64_t root = INT64_MAX;
        for (end = i; end < f->nodes && places[end].tree == places[i].tree; end++)
            if (!child[places[end].index] && places[end].index < root)
                root = places[end].index;
        TN_RULE(x, root != INT64_MAX, "tree %" PRId64 " has no root: its nodes form a circle", places[i].tree);
        f->roots[f->trees++] = f->mode[root] == TN_FOREST_LEAF ? ~root : root;
    }
    return check_circles(x, f, child);
}

static tn_status read_nodes(tn_expand *x, tn_forest *f, place **places) {
    const int64_t *tree, *node, *yes, *no, *missing;
    int64_t n = f->nodes = tn_expand_ints(x, "nodes_treeids", &tree);
    TN_RULE(x, n, "attribute 'nodes_treeids' is missing");
    TN_TRY(ints(x, "nodes_nodeids", n, &node));
    TN_TRY(ints(x, "nodes_featureids", n, &f->feature));
    TN_TRY(ints(x, "nodes_truenodeids", n, &yes));
    TN_TRY(ints(x, "nodes_falsenodeids", n, &no));
    if (tn_expand_ints(x, "nodes_missing_value_tracks_true", &missing)) {
        TN_TRY(ints(x, "nodes_missing_value_tracks_true", n, &missing));
        f->missing = missing;
    }
    TN_TRY(read_modes(x, f));
    TN_TRY(numbers(x, "nodes_values", "nodes_values_as_tensor", &n, &f->value, &f->wide));
    TN_TRY(make_places(x, n, tree, node, places));
    f->yes = tn_expand_alloc(x, (size_t)n, sizeof *f->yes);
    f->no = tn_expand_alloc(x, (size_t)n, sizeof *f->no);
    if (!f->yes || !f->no)
        return tn_error_status();
    for (int64_t i = 0; i < n; i++) {
        if (f->mode[i] == TN_FOREST_LEAF)
            continue;
        int64_t a = find_place(*places, n, tree[i], yes[i]), b = find_place(*places, n, tree[i], no[i]);
        TN_RULE(x, a >= 0 && b >= 0,
                "node %" PRId64 " of tree %" PRId64 " has the child %" PRId64 ", which does not exist", node[i],
                tree[i], a < 0 ? yes[i] : no[i]);
        f->yes[i] = f->mode[a] == TN_FOREST_LEAF ? ~a : a;
        f->no[i] = f->mode[b] == TN_FOREST_LEAF ? ~b : b;
    }
    return find_roots(x, f, *places);
}

/* The name of an attribute: prefix and rest. */
static const char *named(char text[64], const char *prefix, const char *rest) {
    size_t n = strlen(prefix);
    memcpy(text, prefix, n);
    memcpy(text + n, rest, strlen(rest) + 1);
    return text;
}

static tn_status read_votes(tn_expand *x, tn_forest *f, const char *prefix, const place *places) {
    char text[64], text2[64];
    const int64_t *tree, *node, *target;
    double *weight;
    bool wide = false;
    int64_t n = tn_expand_ints(x, named(text, prefix, "_ids"), &target);
    TN_TRY(ints(x, named(text, prefix, "_treeids"), n, &tree));
    TN_TRY(ints(x, named(text, prefix, "_nodeids"), n, &node));
    TN_TRY(numbers(x, named(text, prefix, "_weights"), named(text2, prefix, "_weights_as_tensor"), &n, &weight, &wide));
    f->leaves = f->nodes;
    f->votes_of = tn_expand_alloc(x, (size_t)f->leaves + 2, sizeof *f->votes_of);
    f->vote_target = tn_expand_alloc(x, (size_t)n, sizeof *f->vote_target);
    f->vote_weight = tn_expand_alloc(x, (size_t)n, sizeof *f->vote_weight);
    int64_t *leaf = tn_expand_alloc(x, (size_t)n, sizeof *leaf);
    if (!f->votes_of || !f->vote_target || !f->vote_weight || !leaf)
        return tn_error_status();
    for (int64_t i = 0; i < n; i++) {
        leaf[i] = find_place(places, f->nodes, tree[i], node[i]);
        TN_RULE(x, leaf[i] >= 0, "a vote is of node %" PRId64 " of tree %" PRId64 ", which does not exist", node[i],
                tree[i]);
        TN_RULE(x, target[i] >= 0 && target[i] < f->targets, "a vote is for number %" PRId64 " of %" PRId64, target[i],
                f->targets);
        f->votes_of[leaf[i] + 2]++;
    }
    add_up(f->leaves, f->votes_of + 1); /* one ahead: filling moves each to its end, where the next begins */
    for (int64_t i = 0; i < n; i++) {
        int64_t at = f->votes_of[leaf[i] + 1]++;
        f->vote_target[at] = target[i];
        f->vote_weight[at] = weight[i];
    }
    return TN_OK;
}

tn_status tn_forest_read_lists(tn_expand *x, const char *prefix, int64_t targets, tn_forest *f) {
    place *places = NULL;
    bool wide = false;
    *f = (tn_forest){.targets = targets, .bases = -1};
    TN_TRY(read_nodes(x, f, &places));
    TN_TRY(read_votes(x, f, prefix, places));
    return numbers(x, "base_values", "base_values_as_tensor", &f->bases, &f->base, &wide);
}

/* --- inner nodes and leaves apart ------------------------------------------------------------------------------------------------------ */

/* Sets of numbers that end with NaN, one for each node of that mode, in the nodes' order. */
static tn_status read_members(tn_expand *x, tn_forest *f) {
    double *all;
    bool wide = false;
    int64_t count = -1, at = 0, kept = 0;
    TN_TRY(numbers(x, NULL, "membership_values", &count, &all, &wide));
    f->members = all;
    f->members_of = tn_expand_alloc(x, (size_t)f->nodes + 1, sizeof *f->members_of);
    if (!f->members_of)
        return tn_error_status();
    for (int64_t i = 0; i < f->nodes; i++) {
        f->members_of[i] = kept;
        if (f->mode[i] != TN_FOREST_MEMBER)
            continue;
        while (at < count && !isnan(all[at]))
            all[kept++] = all[at++];
        TN_RULE(x, at < count, "'membership_values' has fewer sets than there are nodes of that mode");
        at++;
    }
    f->members_of[f->nodes] = kept;
    TN_RULE(x, at == count, "'membership_values' has more sets than there are nodes of that mode");
    return TN_OK;
}

static tn_status read_children(tn_expand *x, const tn_forest *f, const char *ids_name, const char *leafs_name,
                               int64_t **out) {
    const int64_t *ids, *leafs;
    TN_TRY(ints(x, ids_name, f->nodes, &ids));
    TN_TRY(ints(x, leafs_name, f->nodes, &leafs));
    *out = tn_expand_alloc(x, (size_t)f->nodes, sizeof **out);
    if (!*out)
        return tn_error_status();
    for (int64_t i = 0; i < f->nodes; i++) {
        TN_RULE(x, ids[i] >= 0 && ids[i] < (leafs[i] ? f->leaves : f->nodes),
                "'%s' has %" PRId64 ", which does not exist", ids_name, ids[i]);
        (*out)[i] = leafs[i] ? ~ids[i] : ids[i];
    }
    return TN_OK;
}

static tn_status read_leaves(tn_expand *x, tn_forest *f) {
    const int64_t *targets;
    bool wide = false;
    f->leaves = tn_expand_ints(x, "leaf_targetids", &targets);
    TN_TRY(numbers(x, NULL, "leaf_weights", &f->leaves, &f->vote_weight, &wide));
    f->vote_target = tn_expand_alloc(x, (size_t)f->leaves, sizeof *f->vote_target);
    f->votes_of = tn_expand_alloc(x, (size_t)f->leaves + 1, sizeof *f->votes_of);
    if (!f->vote_target || !f->votes_of)
        return tn_error_status();
    for (int64_t i = 0; i < f->leaves; i++) {
        TN_RULE(x, targets[i] >= 0 && targets[i] < f->targets, "'leaf_targetids' has %" PRId64 " of %" PRId64,
                targets[i], f->targets);
        f->vote_target[i] = targets[i];
        f->votes_of[i + 1] = i + 1;
    }
    return TN_OK;
}

tn_status tn_forest_read_split(tn_expand *x, tn_forest *f) {
    const int64_t *missing, *roots;
    tn_tensor *modes = tn_expand_tensor(x, "nodes_modes");
    *f = (tn_forest){.targets = tn_expand_int(x, "n_targets")};
    TN_RULE(x, f->targets >= 1, "'n_targets' is %" PRId64, f->targets);
    int64_t n = f->nodes = tn_expand_ints(x, "nodes_featureids", &f->feature);
    TN_RULE(x, modes->dtype == TN_U8 && modes->rank == 1 && modes->count == n,
            "'nodes_modes' must be a list of %" PRId64 " u8", n);
    f->mode = tn_expand_alloc(x, (size_t)n, 1);
    if (!f->mode)
        return tn_error_status();
    for (int64_t i = 0; i < n; i++) {
        int64_t mode = tn_tensor_get_i64(modes, i);
        TN_RULE(x, mode <= TN_FOREST_MEMBER, "'nodes_modes' has %" PRId64, mode);
        f->mode[i] = (uint8_t)mode;
    }
    TN_TRY(numbers(x, NULL, "nodes_splits", &n, &f->value, &f->wide));
    if (tn_expand_ints(x, "nodes_missing_value_tracks_true", &missing)) {
        TN_TRY(ints(x, "nodes_missing_value_tracks_true", n, &missing));
        f->missing = missing;
    }
    TN_TRY(read_leaves(x, f));
    TN_TRY(read_children(x, f, "nodes_truenodeids", "nodes_trueleafs", &f->yes));
    TN_TRY(read_children(x, f, "nodes_falsenodeids", "nodes_falseleafs", &f->no));
    TN_TRY(read_members(x, f));
    f->trees = tn_expand_ints(x, "tree_roots", &roots);
    f->roots = tn_expand_alloc(x, (size_t)f->trees, sizeof *f->roots);
    if (!f->roots)
        return tn_error_status();
    for (int64_t i = 0; i < f->trees; i++) {
        TN_RULE(x, roots[i] >= 0 && roots[i] < n, "'tree_roots' has %" PRId64 ", which does not exist", roots[i]);
        f->roots[i] = roots[i];
    }
    return TN_OK;
}
