/* What files declare of the rows that Loop and Scan stack: the result of a loop that makes no trip. */
#include "onnx/expand_common.h"
#include "ops/control.h"

/* What a file declares of body result `index`, "f32[1,N,?]" or "f32[*]", as an entry of TN_LOOP_ROWS; its length. */
static uint32_t declared_row(const tn_expand *x, uint32_t index, int64_t row[2 + TN_MAX_RANK]) {
    const tn_graph *g = x->graph;
    const tn_attr *list = tn_node_attr(g, x->node, "__graph:body");
    const char *name = tn_value_name(g, tn_region_result(g, tn_node_region(g, x->node, 0), index));
    size_t length = strlen(name);
    char text[512];
    row[0] = row[1] = 0;
    for (uint32_t i = 1; list && *name && i < list->count; i++) {
        tn_string s = list->as.strings[i];
        if (s.length < length + 3 || s.length - length >= sizeof text || memcmp(s.data, name, length) != 0 ||
            memcmp(s.data + length, ": ", 2) != 0)
            continue;
        memcpy(text, s.data + length + 2, s.length - length - 2);
        text[s.length - length - 2] = 0;
        char *p = text + strcspn(text, "[");
        if (*p != '[')
            return 2;
        *p++ = 0;
        row[0] = tn_dtype_from_name(text);
        row[1] = *p == '*' ? -1 : 0;
        while (row[1] >= 0 && row[1] < TN_MAX_RANK && *p && *p != ']') {
            int64_t size = 0;
            bool number = *p >= '0' && *p <= '9';
            for (bool quoted = false; *p && (quoted || (*p != ',' && *p != ']')); p++)
                if (*p == '"')
                    quoted = !quoted;
                else if (quoted && *p == '\\' && p[1])
                    p++;
                else if (number && size < INT64_MAX / 10 - 9)
                    size = size * 10 + (*p - '0');
            row[2 + row[1]++] = size;
            p += *p == ',';
        }
        row[1] = row[1] < TN_MAX_RANK ? row[1] : -1; /* no row has it */
        return row[1] > 0 ? 2 + (uint32_t)row[1] : 2;
    }
    return 2;
}

tn_status tn_expand_loop_rows(tn_expand *x, tn_region body, uint32_t carried, uint32_t ours, tn_attr *attr,
                              uint32_t *count) {
    const tn_graph *g = x->graph;
    bool needed = false;
    uint32_t n = 0, results = tn_region_result_count(g, body);
    int64_t *list = tn_expand_alloc(x, (size_t)(results - carried) * (2 + TN_MAX_RANK) + 1, sizeof *list);
    if (!list)
        return tn_error_status();
    for (uint32_t i = carried; i < results; i++) {
        tn_value row = tn_region_result(g, body, i);
        needed = needed || tn_value_rank(g, row) < 0;
        n += declared_row(x, i - ours, list + n);
    }
    if (needed)
        attr[(*count)++] = TN_A_INTS(TN_LOOP_ROWS, n, list);
    return TN_OK;
}
