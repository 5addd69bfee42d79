/* How a test folder is to be judged. */
#include "cli/case_json.h"

#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/os.h"

static tn_status number(const tn_json *json, const char *key, double *value) {
    const tn_json *item = tn_json_get(json, key);
    if (item && (!tn_json_number(item, value) || *value < 0))
        return tn_fail(TN_ERR_INPUT, "\"%s\" must be a number of at least 0", key);
    return TN_OK;
}

static tn_status list(const tn_json *json, const char *key, tn_json_kind kind, const tn_json **out) {
    const tn_json *item = tn_json_get(json, key);
    bool good = !item || item->kind == TN_JSON_ARRAY;
    for (const tn_json *i = item ? item->items : NULL; i && good; i = i->next)
        good = i->kind == kind;
    *out = item;
    return good ? TN_OK
                : tn_fail(TN_ERR_INPUT, "\"%s\" must be a list of %s", key,
                          kind == TN_JSON_STRING ? "strings" : "numbers");
}

static tn_status read_fields(const tn_json *json, tn_case *c) {
    if (json->kind != TN_JSON_OBJECT)
        return tn_fail(TN_ERR_INPUT, "it must be one object");
    TN_TRY(number(json, "rtol", &c->rtol));
    TN_TRY(number(json, "atol", &c->atol));
    TN_TRY(number(json, "max_ms", &c->max_ms));
    TN_TRY(number(json, "max_rss_mb", &c->max_rss_mb));
    TN_TRY(list(json, "shape_only", TN_JSON_NUMBER, &c->shape_only));
    TN_TRY(list(json, "error_mentions", TN_JSON_STRING, &c->error_mentions));
    const tn_json *expect = tn_json_get(json, "expect");
    if (expect && (expect->kind != TN_JSON_STRING ||
                   (strcmp(expect->text, "error") != 0 && strcmp(expect->text, "outputs") != 0)))
        return tn_fail(TN_ERR_INPUT, "\"expect\" must be \"outputs\" or \"error\"");
    c->expect_error = expect && strcmp(expect->text, "error") == 0;
    return TN_OK;
}

tn_status tn_case_read(const char *folder, const char *name, tn_case *out) {
    *out = (tn_case){.rtol = 1e-3, .atol = 1e-7};
    tn_arena_init(&out->arena, NULL);
    tn_text path;
    tn_text_init(&path, NULL);
    tn_text_printf(&path, "%s/%s", folder, name);
    size_t size;
    char *bytes = NULL;
    tn_status status = path.failed ? TN_ERR_MEMORY : TN_OK;
    if (status == TN_OK && tn_path_kind_of(path.data) != TN_PATH_NONE) {
        out->present = true;
        if (!(bytes = tn_file_read(NULL, path.data, &size)))
            status = tn_error_status();
    }
    if (bytes) {
        const char *kept = tn_arena_copy(&out->arena, bytes, size); /* numbers point into it */
        const tn_json *json = kept ? tn_json_parse(&out->arena, kept, size) : NULL;
        status = json ? read_fields(json, out) : tn_error_status();
        if (status != TN_OK)
            tn_fail_where("file %s", path.data);
    }
    tn_free(NULL, bytes);
    tn_text_free(&path);
    return status;
}

void tn_case_free(tn_case *c) {
    tn_arena_free(&c->arena);
}

bool tn_case_shape_only(const tn_case *c, uint32_t output) {
    for (const tn_json *i = c->shape_only ? c->shape_only->items : NULL; i; i = i->next) {
        double index;
        if (tn_json_number(i, &index) && index == (double)output)
            return true;
    }
    return false;
}

const char *tn_case_not_mentioned(const tn_case *c, const char *message) {
    for (const tn_json *i = c->error_mentions ? c->error_mentions->items : NULL; i; i = i->next)
        if (!strstr(message, i->text))
            return i->text;
    return NULL;
}
