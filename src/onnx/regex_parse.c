/* Reading RE2's syntax. */
#include "onnx/regex_parse.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "onnx/letters.h"

enum { DEEPEST = 200, MOST_REPEATS = 1000, LAST_CHAR = 0x10FFFF };

typedef TN_VEC(tn_char_range) range_vec;

typedef struct flags {
    bool fold, lines, dot_all; /* i, m, s; U only swaps what is tried first */
} flags;

typedef struct parser {
    tn_arena *arena;
    const char *begin, *at, *end;
    flags flags;
    int depth;
    bool failed;
} parser;

/* Sets the error; answers NULL. */
static void *wrong(parser *p, const char *what) {
    if (!p->failed)
        tn_fail(TN_ERR_MODEL, "the pattern is wrong at byte %zu: %s", (size_t)(p->at - p->begin), what);
    p->failed = true;
    return NULL;
}

static void *unsupported(parser *p, const char *what) {
    if (!p->failed)
        tn_fail(TN_ERR_UNSUPPORTED, "not supported: %s in a pattern", what);
    p->failed = true;
    return NULL;
}

static bool peek(const parser *p, const char *text) {
    size_t n = strlen(text);
    return (size_t)(p->end - p->at) >= n && memcmp(p->at, text, n) == 0;
}

static bool take(parser *p, const char *text) {
    bool found = peek(p, text);
    if (found)
        p->at += strlen(text);
    return found;
}

/* The next character. */
static bool next_char(parser *p, uint32_t *code) {
    size_t used = tn_utf8_next(p->at, (size_t)(p->end - p->at), code);
    if (!used)
        return wrong(p, p->at == p->end ? "it ends too early" : "it is not UTF-8") != NULL;
    p->at += used;
    return true;
}

/* --- sets of characters ------------------------------------------------------------------------------------------------------ */

static bool in_ranges(const tn_char_set *set, uint32_t code) {
    uint32_t low = 0, high = set->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (set->ranges[middle].high < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->count && set->ranges[low].low <= code;
}

/* Letters that are neither their own fold nor its upper case. */
static const uint32_t odd_letters[] = {0xb5,   0x17f,  0x1c5,  0x1c8,  0x1cb,  0x1f2,  0x345,  0x3c2,
                                       0x3d0,  0x3d1,  0x3d5,  0x3d6,  0x3f0,  0x3f1,  0x3f4,  0x3f5,
                                       0x1c80, 0x1c81, 0x1c82, 0x1c83, 0x1c84, 0x1c85, 0x1c86, 0x1c87,
                                       0x1c88, 0x1e9b, 0x1e9e, 0x1fbe, 0x2126, 0x212a, 0x212b};

static bool in_folded(const tn_char_set *set, uint32_t code) {
    uint32_t fold = tn_letter_fold(code);
    if (in_ranges(set, code) || in_ranges(set, fold))
        return true;
    if (tn_letter_fold(tn_letter_case(fold, TN_CASE_UPPER, false)) == fold &&
        in_ranges(set, tn_letter_case(fold, TN_CASE_UPPER, false)))
        return true;
    for (size_t i = 0; i < sizeof odd_letters / sizeof *odd_letters; i++)
        if (tn_letter_fold(odd_letters[i]) == fold && in_ranges(set, odd_letters[i]))
            return true;
    return false;
}

bool tn_char_set_has(const tn_char_set *set, uint32_t code) {
    return (set->fold ? in_folded(set, code) : in_ranges(set, code)) != set->negated;
}

typedef struct set_builder {
    parser *p;
    range_vec ranges;
} set_builder;

static bool add_range(void *ctx, uint32_t low, uint32_t high) {
    set_builder *b = ctx;
    tn_char_range r = {low, high};
    if (tn_vec_push(b->p->arena->heap, &b->ranges, r))
        return true;
    b->p->failed = true;
    return false;
}

static int by_low(const void *a, const void *b) {
    const tn_char_range *x = a, *y = b;
    return x->low < y->low ? -1 : x->low > y->low;
}

static void sort_ranges(range_vec *v) {
    uint32_t n = 0;
    if (v->len)
        qsort(v->data, v->len, sizeof *v->data, by_low);
    for (uint32_t i = 0; i < v->len; i++) {
        if (n && v->data[i].low <= v->data[n - 1].high + 1)
            v->data[n - 1].high = v->data[i].high > v->data[n - 1].high ? v->data[i].high : v->data[n - 1].high;
        else
            v->data[n++] = v->data[i];
    }
    v->len = n;
}

/* What is not in `from` is added. */
static bool add_others(set_builder *b, range_vec *from) {
    uint32_t low = 0;
    bool good = true;
    sort_ranges(from);
    for (uint32_t i = 0; i < from->len && good; i++) {
        if (from->data[i].low > low)
            good = add_range(b, low, from->data[i].low - 1);
        low = from->data[i].high + 1;
    }
    return good && (low > LAST_CHAR || add_range(b, low, LAST_CHAR));
}

/* The named ASCII classes; `text`: pairs of first and last. */
static bool add_pairs(set_builder *b, const char *pairs, bool negated) {
    set_builder inner = {.p = b->p};
    bool good = true;
    for (const char *c = pairs; *c && good; c += 2)
        good = add_range(negated ? &inner : b, (uint8_t)c[0], (uint8_t)c[1]);
    if (good && negated)
        good = add_others(b, &inner.ranges);
    tn_vec_free(b->p->arena->heap, &inner.ranges);
    return good;
}

static const char *perl_class(char letter) {
    switch (letter) {
    case 'd': return "09";
    case 's': return "\t\n\f\r  ";
    case 'w': return "09AZaz__";
    default: return NULL;
    }
}

/* [:name:] */
static bool take_posix(set_builder *b, bool *found) {
    static const struct {
        const char *name, *pairs;
    } list[] = {{"alnum", "09AZaz"},
                {"alpha", "AZaz"},
                {"ascii", "\x01\x7f"},
                {"blank", "\t\t  "},
                {"cntrl", "\x01\x1f\x7f\x7f"},
                {"digit", "09"},
                {"graph", "!~"},
                {"lower", "az"},
                {"print", " ~"},
                {"punct", "!/:@[`{~"},
                {"space", "\t\r  "},
                {"upper", "AZ"},
                {"word", "09AZaz__"},
                {"xdigit", "09AFaf"}};
    parser *p = b->p;
    *found = false;
    if (!peek(p, "[:"))
        return true;
    const char *start = p->at + 2, *stop;
    bool negated = start < p->end && *start == '^';
    start += negated;
    for (stop = start; stop < p->end && *stop >= 'a' && *stop <= 'z'; stop++) {
    }
    if (p->end - stop < 2 || stop[0] != ':' || stop[1] != ']')
        return true;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        size_t n = strlen(list[i].name);
        if (n != (size_t)(stop - start) || memcmp(list[i].name, start, n) != 0)
            continue;
        p->at = stop + 2;
        *found = true;
        set_builder inner = {.p = p};
        bool zero = list[i].pairs[0] == 1; /* U+0000 is in it, too */
        bool good = !zero || add_range(negated ? &inner : b, 0, 0);
        if (good && !negated)
            good = add_pairs(b, list[i].pairs, false);
        else if (good)
            good = add_pairs(&inner, list[i].pairs, false) && add_others(b, &inner.ranges);
        tn_vec_free(p->arena->heap, &inner.ranges);
        return good;
    }
    return wrong(p, "there is no such class") != NULL;
}

/* \d \S \pL \P{Lu} ... : *found when there is one. */
static bool take_class(set_builder *b, bool *found) {
    parser *p = b->p;
    *found = false;
    if (p->end - p->at < 2 || p->at[0] != '\\')
        return true;
    char letter = p->at[1], small = (char)(letter | 32);
    const char *pairs = perl_class(small);
    bool negated = letter != small;
    if (pairs) {
        p->at += 2;
        *found = true;
        return add_pairs(b, pairs, negated);
    }
    if (small != 'p')
        return true;
    *found = true;
    p->at += 2;
    const char *name = p->at;
    size_t length = 1;
    if (p->at == p->end)
        return wrong(p, "the name of a category is missing") != NULL;
    if (take(p, "{")) {
        const char *stop = memchr(p->at, '}', (size_t)(p->end - p->at));
        if (!stop)
            return wrong(p, "'}' is missing") != NULL;
        if (take(p, "^"))
            negated = !negated;
        name = p->at;
        length = (size_t)(stop - name);
        p->at = stop + 1;
    } else {
        p->at++;
    }
    set_builder inner = {.p = p};
    bool known, good = tn_char_category(name, length, add_range, negated ? &inner : b, &known);
    if (!known)
        unsupported(p, "a category of characters other than Unicode's general ones");
    if (good && negated)
        good = add_others(b, &inner.ranges);
    tn_vec_free(p->arena->heap, &inner.ranges);
    return good;
}

static int digit_of(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : 99;
}

/* What stands after \x */
static bool take_hex(parser *p, uint32_t *code) {
    bool braces = take(p, "{");
    int most = braces ? 8 : 2, n = 0;
    *code = 0;
    for (; n < most && p->at < p->end && digit_of(*p->at) < 16; n++)
        *code = *code * 16 + (uint32_t)digit_of(*p->at++);
    bool good = braces ? n > 0 && take(p, "}") : n == 2;
    return (good && *code <= LAST_CHAR) || wrong(p, "\\x needs a number in base 16") != NULL;
}

/* An escaped character; p is after the backslash. */
static bool take_escape(parser *p, uint32_t *code) {
    if (!next_char(p, code))
        return false;
    uint32_t c = *code;
    if (c < 0x80 && !((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')))
        return true;
    switch (c) {
    case 'a': *code = 7; return true;
    case 'f': *code = 12; return true;
    case 'n': *code = 10; return true;
    case 'r': *code = 13; return true;
    case 't': *code = 9; return true;
    case 'v': *code = 11; return true;
    case 'x': return take_hex(p, code);
    case 'C': return unsupported(p, "\\C") != NULL;
    default: break;
    }
    if (c < '0' || c > '7' || (c != '0' && (p->at == p->end || digit_of(*p->at) > 7)))
        return wrong(p, "there is no such escape") != NULL;
    *code = c - '0'; /* \0, \12, \123 */
    for (int i = 0; i < 2 && p->at < p->end && digit_of(*p->at) < 8; i++)
        *code = *code * 8 + (uint32_t)digit_of(*p->at++);
    return true;
}

static bool take_member(parser *p, uint32_t *code) {
    return take(p, "\\") ? take_escape(p, code) : next_char(p, code);
}

/* Items of [...] up to the ']'. */
static bool take_members(set_builder *b) {
    parser *p = b->p;
    for (bool first = true; first || !peek(p, "]"); first = false) {
        bool found;
        uint32_t low, high;
        if (p->at == p->end)
            return wrong(p, "']' is missing") != NULL;
        if (!take_posix(b, &found))
            return false;
        if (!found && !take_class(b, &found))
            return false;
        if (found)
            continue;
        if (!take_member(p, &low))
            return false;
        high = low;
        if (peek(p, "-") && p->end - p->at > 1 && p->at[1] != ']') {
            p->at++;
            if (!take_member(p, &high))
                return false;
            if (high < low)
                return wrong(p, "a range is the wrong way round") != NULL;
        }
        if (!add_range(b, low, high))
            return false;
    }
    p->at++;
    return true;
}

/* --- trees ------------------------------------------------------------------------------------------------------------------- */

static tn_regex_tree *new_tree(parser *p, tn_regex_kind kind) {
    tn_regex_tree *t = tn_arena_alloc(p->arena, sizeof *t);
    if (!t)
        p->failed = true;
    else
        *t = (tn_regex_tree){.kind = kind, .repeats = 1};
    return t;
}

static const tn_regex_tree *set_tree(set_builder *b, bool good, bool negated) {
    parser *p = b->p;
    tn_regex_tree *t = good ? new_tree(p, TN_REGEX_SET) : NULL;
    if (t) {
        sort_ranges(&b->ranges);
        t->set = (tn_char_set){.count = b->ranges.len, .fold = p->flags.fold, .negated = negated};
        t->set.ranges = tn_arena_copy(p->arena, b->ranges.data, b->ranges.len * sizeof *b->ranges.data);
        if (b->ranges.len && !t->set.ranges)
            p->failed = true;
    }
    tn_vec_free(p->arena->heap, &b->ranges);
    return p->failed ? NULL : t;
}

static const tn_regex_tree *char_tree(parser *p, uint32_t code) {
    set_builder b = {.p = p};
    return set_tree(&b, add_range(&b, code, code), false);
}

static const tn_regex_tree *assert_tree(parser *p, tn_regex_place place) {
    tn_regex_tree *t = new_tree(p, TN_REGEX_ASSERT);
    if (t)
        t->place = place;
    return t;
}

typedef TN_VEC(const tn_regex_tree *) tree_vec;

static const tn_regex_tree *list_tree(parser *p, tn_regex_kind kind, const tree_vec *parts) {
    tn_regex_tree *t = p->failed ? NULL : new_tree(p, kind);
    if (!t)
        return NULL;
    t->count = parts->len;
    for (uint32_t i = 0; i < parts->len; i++)
        t->repeats = parts->data[i]->repeats > t->repeats ? parts->data[i]->repeats : t->repeats;
    t->part = tn_arena_copy(p->arena, parts->data, parts->len * sizeof *parts->data);
    if (parts->len && !t->part)
        p->failed = true;
    return p->failed ? NULL : t;
}

static const tn_regex_tree *take_choice(parser *p);

/* (?flags) or (?flags:; p is after "(?". *group: a group begins. */
static bool take_flags(parser *p, bool *group) {
    bool on = true, any = false;
    for (; p->at < p->end; p->at++) {
        switch (*p->at) {
        case 'i': p->flags.fold = on; break;
        case 'm': p->flags.lines = on; break;
        case 's': p->flags.dot_all = on; break;
        case 'U': break;
        case '-':
            if (!on)
                return wrong(p, "'-' is given twice") != NULL;
            on = false;
            any = false;
            continue;
        case ':':
        case ')':
            if (!on && !any)
                return wrong(p, "flags are missing after '-'") != NULL;
            *group = *p->at++ == ':';
            return true;
        default: return wrong(p, "there is no such flag") != NULL;
        }
        any = true;
    }
    return wrong(p, "')' is missing") != NULL;
}

/* P<name> or <name>: names are of letters, digits and '_'. */
static bool take_name(parser *p) {
    const char *start = p->at;
    while (p->at < p->end && *p->at != '>') {
        uint32_t code;
        if (!next_char(p, &code))
            return false;
        if (code < 0x80 && code != '_' && digit_of((char)code) > 9 && !((code | 32) >= 'a' && (code | 32) <= 'z'))
            return wrong(p, "a name holds what is no letter") != NULL;
    }
    return (p->at > start && take(p, ">")) || wrong(p, "the name of a group is wrong") != NULL;
}

/* What stands after "(". NULL with *none: only flags. */
static const tn_regex_tree *take_group(parser *p, bool *none) {
    flags outer = p->flags;
    bool group = true;
    if (take(p, "?P<") || take(p, "?<")) {
        if (!take_name(p))
            return NULL;
    } else if (take(p, "?")) {
        if (!take_flags(p, &group))
            return NULL;
    }
    if (!group) {
        *none = true; /* the flags hold to the end of the group around */
        return NULL;
    }
    if (++p->depth > DEEPEST)
        return wrong(p, "groups are nested too deep");
    const tn_regex_tree *t = take_choice(p);
    p->depth--;
    p->flags = outer;
    if (!t)
        return NULL;
    return take(p, ")") ? t : wrong(p, "')' is missing");
}

/* \A \b \B \z, \Q...\E, classes, characters. Adds to `parts`. */
static const tn_regex_tree *take_backslash(parser *p, tree_vec *parts) {
    uint32_t code;
    if (take(p, "\\A"))
        return assert_tree(p, TN_REGEX_TEXT_BEGIN);
    if (take(p, "\\z"))
        return assert_tree(p, TN_REGEX_TEXT_END);
    if (take(p, "\\b"))
        return assert_tree(p, TN_REGEX_WORD);
    if (take(p, "\\B"))
        return assert_tree(p, TN_REGEX_NO_WORD);
    if (take(p, "\\Q")) {
        const tn_regex_tree *last = NULL; /* what follows repeats the last character only */
        while (p->at < p->end && !take(p, "\\E")) {
            if (last && !tn_vec_push(p->arena->heap, parts, last))
                p->failed = true;
            if (p->failed || !next_char(p, &code) || !(last = char_tree(p, code)))
                return NULL;
        }
        return last ? last : list_tree(p, TN_REGEX_SEQUENCE, &(tree_vec){0});
    }
    set_builder b = {.p = p};
    bool found, good = take_class(&b, &found);
    if (!good || found)
        return set_tree(&b, good, false);
    tn_vec_free(p->arena->heap, &b.ranges);
    p->at++;
    return take_escape(p, &code) ? char_tree(p, code) : NULL;
}

static const tn_regex_tree *take_atom(parser *p, tree_vec *parts, bool *none) {
    set_builder b = {.p = p};
    uint32_t code;
    if (take(p, "("))
        return take_group(p, none);
    if (take(p, "[")) {
        bool negated = take(p, "^");
        return set_tree(&b, take_members(&b), negated);
    }
    if (take(p, "."))
        return set_tree(&b, p->flags.dot_all ? add_range(&b, 0, LAST_CHAR) : add_pairs(&b, "\n\n", true), false);
    if (take(p, "^"))
        return assert_tree(p, p->flags.lines ? TN_REGEX_LINE_BEGIN : TN_REGEX_TEXT_BEGIN);
    if (take(p, "$"))
        return assert_tree(p, p->flags.lines ? TN_REGEX_LINE_END : TN_REGEX_TEXT_END);
    if (peek(p, "\\"))
        return take_backslash(p, parts);
    if (peek(p, "*") || peek(p, "+") || peek(p, "?"))
        return wrong(p, "there is nothing to repeat");
    return next_char(p, &code) ? char_tree(p, code) : NULL;
}

/* {n}, {n,}, {n,m}: false, and nothing read, when it is none of these. */
static bool take_count(parser *p, int32_t *least, int32_t *most) {
    const char *start = p->at;
    int32_t n[2] = {0, -1};
    bool good = take(p, "{");
    for (int i = 0; i < 2 && good; i++) {
        const char *digits = p->at;
        int32_t v = 0;
        for (; p->at < p->end && digit_of(*p->at) < 10; p->at++)
            v = v > MOST_REPEATS ? v : v * 10 + digit_of(*p->at);
        if (p->at > digits)
            n[i] = v;
        else
            good = i == 1;
        if (i == 0 && good && !take(p, ",")) {
            n[1] = n[0];
            break;
        }
    }
    if (!good || !take(p, "}")) {
        p->at = start;
        return false;
    }
    *least = n[0];
    *most = n[1];
    return true;
}

/* What repeats the part before. */
static const tn_regex_tree *take_repeat(parser *p, const tn_regex_tree *part) {
    int32_t least = 0, most = -1;
    for (bool again = false; part; again = true) {
        if (take(p, "*")) {
            least = 0;
            most = -1;
        } else if (take(p, "+")) {
            least = 1;
            most = -1;
        } else if (take(p, "?")) {
            least = 0;
            most = 1;
        } else if (!take_count(p, &least, &most)) {
            break;
        }
        if (again)
            return wrong(p, "a repetition is repeated");
        if (least > MOST_REPEATS || most > MOST_REPEATS || (most >= 0 && most < least))
            return wrong(p, "the number of repetitions is wrong");
        take(p, "?");
        int32_t times = most > least ? most : least;
        if (times > 1 && (int64_t)times * part->repeats > MOST_REPEATS)
            return wrong(p, "repetitions inside repetitions are too many");
        tn_regex_tree *t = new_tree(p, TN_REGEX_REPEAT);
        const tn_regex_tree **child = t ? tn_arena_alloc(p->arena, sizeof *child) : NULL;
        if (!child) {
            p->failed = true;
            return NULL;
        }
        *child = part;
        t->part = child;
        t->count = 1;
        t->least = least;
        t->most = most;
        t->repeats = part->repeats * (times > 1 ? times : 1);
        part = t;
    }
    return part;
}

static const tn_regex_tree *take_sequence(parser *p) {
    tree_vec parts = {0};
    const tn_regex_tree *t = NULL;
    while (!p->failed && p->at < p->end && *p->at != '|' && *p->at != ')') {
        bool none = false;
        const tn_regex_tree *part = take_atom(p, &parts, &none);
        if (none)
            continue;
        part = part ? take_repeat(p, part) : NULL;
        if (!part || !tn_vec_push(p->arena->heap, &parts, part))
            p->failed = true;
    }
    if (!p->failed)
        t = list_tree(p, TN_REGEX_SEQUENCE, &parts);
    tn_vec_free(p->arena->heap, &parts);
    return t;
}

static const tn_regex_tree *take_choice(parser *p) {
    tree_vec parts = {0};
    do {
        const tn_regex_tree *part = take_sequence(p);
        if (!part || !tn_vec_push(p->arena->heap, &parts, part))
            p->failed = true;
    } while (!p->failed && take(p, "|"));
    const tn_regex_tree *t = parts.len == 1 && !p->failed ? parts.data[0] : list_tree(p, TN_REGEX_CHOICE, &parts);
    tn_vec_free(p->arena->heap, &parts);
    return t;
}

const tn_regex_tree *tn_regex_parse(tn_arena *arena, const char *pattern, size_t length) {
    parser p = {.arena = arena, .begin = pattern, .at = pattern, .end = pattern + length};
    const tn_regex_tree *t = take_choice(&p);
    if (t && p.at < p.end)
        return wrong(&p, "there is a ')' too many");
    return t;
}
