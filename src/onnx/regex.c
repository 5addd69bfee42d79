/* Patterns as programs, run on all alternatives at once: after each character the set of places where the pattern may be. */
#include "onnx/regex.h"

#include "base/error.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "onnx/regex_parse.h"

enum { MOST_STEPS = 1 << 17 };

typedef enum step_kind { STEP_SET, STEP_ASSERT, STEP_FORK, STEP_END } step_kind;
typedef struct step {
    uint8_t kind, place;  /* place: tn_regex_place */
    uint32_t next, other; /* other: of FORK */
    const tn_char_set *set;
} step;

/* Steps reached, each once, in any order. */
typedef struct step_list {
    uint32_t *list, *index; /* [count]; index: where in the list, if there */
    uint32_t count;
} step_list;

struct tn_regex {
    tn_heap *heap;
    tn_arena arena;
    TN_VEC(step) steps;
    uint32_t start;
    step_list now, then;
    uint32_t *pending; /* [steps] */
};

/* --- compiling: backwards, each part knows the step after it ----------------------------------------------------------------- */

static uint32_t emit(tn_regex *r, step s) {
    if (r->steps.len >= MOST_STEPS) {
        tn_fail(TN_ERR_LIMIT, "the pattern is too large: more than %d steps", MOST_STEPS);
        return UINT32_MAX;
    }
    return tn_vec_push(r->heap, &r->steps, s) ? r->steps.len - 1 : UINT32_MAX;
}

/* The first step of a part; UINT32_MAX: failed. */
static uint32_t compile(tn_regex *r, const tn_regex_tree *t, uint32_t next) {
    switch (t->kind) {
    case TN_REGEX_SET: return emit(r, (step){.kind = STEP_SET, .next = next, .set = &t->set});
    case TN_REGEX_ASSERT: return emit(r, (step){.kind = STEP_ASSERT, .place = (uint8_t)t->place, .next = next});
    case TN_REGEX_SEQUENCE:
        for (uint32_t i = t->count; i-- > 0 && next != UINT32_MAX;)
            next = compile(r, t->part[i], next);
        return next;
    case TN_REGEX_CHOICE: {
        uint32_t first = UINT32_MAX;
        for (uint32_t i = 0; i < t->count; i++) {
            uint32_t part = compile(r, t->part[i], next);
            if (part != UINT32_MAX)
                first = i == 0 ? part : emit(r, (step){.kind = STEP_FORK, .next = part, .other = first});
            if (part == UINT32_MAX || first == UINT32_MAX)
                return UINT32_MAX;
        }
        return first;
    }
    case TN_REGEX_REPEAT: break;
    }
    uint32_t at = next;
    if (t->most < 0) {
        at = emit(r, (step){.kind = STEP_FORK, .next = next, .other = next});
        uint32_t body = at == UINT32_MAX ? at : compile(r, t->part[0], at);
        if (body == UINT32_MAX)
            return body;
        r->steps.data[at].next = body;
    }
    for (int32_t i = t->least; i < t->most && at != UINT32_MAX; i++) {
        uint32_t body = compile(r, t->part[0], at);
        at = body == UINT32_MAX ? body : emit(r, (step){.kind = STEP_FORK, .next = body, .other = next});
    }
    for (int32_t i = 0; i < t->least && at != UINT32_MAX; i++)
        at = compile(r, t->part[0], at);
    return at;
}

static bool make_list(tn_regex *r, step_list *l) {
    l->list = tn_alloc_array(r->heap, r->steps.len, sizeof *l->list);
    l->index = tn_alloc_array(r->heap, r->steps.len, sizeof *l->index);
    return l->list && l->index;
}

tn_regex *tn_regex_compile(tn_heap *heap, const char *pattern, size_t length) {
    tn_regex *r = tn_alloc(heap, sizeof *r);
    if (!r)
        return NULL;
    *r = (tn_regex){.heap = heap};
    tn_arena_init(&r->arena, heap);
    const tn_regex_tree *t = tn_regex_parse(&r->arena, length ? pattern : "", length);
    uint32_t last = t ? emit(r, (step){.kind = STEP_END}) : UINT32_MAX;
    r->start = last == UINT32_MAX ? last : compile(r, t, last);
    bool good = r->start != UINT32_MAX && make_list(r, &r->now) && make_list(r, &r->then) &&
                (r->pending = tn_alloc_array(heap, r->steps.len, sizeof *r->pending)) != NULL;
    if (good)
        return r;
    tn_regex_destroy(r);
    return NULL;
}

void tn_regex_destroy(tn_regex *r) {
    if (!r)
        return;
    tn_vec_free(r->heap, &r->steps);
    tn_free(r->heap, r->now.list);
    tn_free(r->heap, r->now.index);
    tn_free(r->heap, r->then.list);
    tn_free(r->heap, r->then.index);
    tn_free(r->heap, r->pending);
    tn_arena_free(&r->arena);
    tn_free(r->heap, r);
}

/* --- running ------------------------------------------------------------------------------------------------------------------ */

/* Between two characters; UINT32_MAX: none there, or bytes that are no character. */
typedef struct gap {
    bool begin, end; /* of the text */
    uint32_t before, after;
} gap;

static bool is_word(uint32_t c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool holds(tn_regex_place place, const gap *g) {
    switch (place) {
    case TN_REGEX_TEXT_BEGIN: return g->begin;
    case TN_REGEX_TEXT_END: return g->end;
    case TN_REGEX_LINE_BEGIN: return g->begin || g->before == '\n';
    case TN_REGEX_LINE_END: return g->end || g->after == '\n';
    case TN_REGEX_WORD: return is_word(g->before) != is_word(g->after);
    case TN_REGEX_NO_WORD: return is_word(g->before) == is_word(g->after);
    }
    return false;
}

static bool put(step_list *l, uint32_t at) {
    if (l->index[at] < l->count && l->list[l->index[at]] == at)
        return false;
    l->index[at] = l->count;
    l->list[l->count++] = at;
    return true;
}

/* Adds a step and all that can be reached from it without a character. */
static void reach(tn_regex *r, step_list *l, uint32_t at, const gap *g) {
    uint32_t pending = 0;
    if (put(l, at))
        r->pending[pending++] = at;
    while (pending) {
        const step *s = &r->steps.data[r->pending[--pending]];
        if (s->kind == STEP_FORK && put(l, s->other))
            r->pending[pending++] = s->other;
        if ((s->kind == STEP_FORK || (s->kind == STEP_ASSERT && holds((tn_regex_place)s->place, g))) && put(l, s->next))
            r->pending[pending++] = s->next;
    }
}

static size_t read_char(const char *text, size_t length, uint32_t *code) {
    size_t used = length ? tn_utf8_next(text, length, code) : 0;
    if (used)
        return used;
    *code = UINT32_MAX;
    return length ? 1 : 0;
}

bool tn_regex_matches(tn_regex *r, const char *text, size_t length) {
    uint32_t code;
    size_t at = 0, used = read_char(text, length, &code);
    gap g = {.begin = true, .end = length == 0, .before = UINT32_MAX, .after = code};
    r->now.count = 0;
    reach(r, &r->now, r->start, &g);
    while (at < length) {
        uint32_t next;
        at += used;
        used = read_char(text + at, length - at, &next);
        g = (gap){.end = at == length, .before = code, .after = next};
        r->then.count = 0;
        for (uint32_t i = 0; i < r->now.count; i++) {
            const step *s = &r->steps.data[r->now.list[i]];
            if (s->kind == STEP_SET && code != UINT32_MAX && tn_char_set_has(s->set, code))
                reach(r, &r->then, s->next, &g);
        }
        step_list swap = r->now;
        r->now = r->then;
        r->then = swap;
        if (r->now.count == 0)
            return false;
        code = next;
    }
    for (uint32_t i = 0; i < r->now.count; i++)
        if (r->steps.data[r->now.list[i]].kind == STEP_END)
            return true;
    return false;
}
