/* A plugin whose second operator is refused: the first must not stay. */
#include <tenon/custom.h>

static tn_status eval(tn_custom_call *c) {
    return tn_custom_fail(c, "never run");
}

TN_PLUGIN(set) {
    tn_status status =
        tn_op_set_add(set, TN_OPTIONS(tn_custom_op, .domain = "com.example", .name = "First", .eval = eval));
    if (status != TN_OK)
        return status;
    return tn_op_set_add(set, TN_OPTIONS(tn_custom_op, .domain = "com.example", .name = "no name", .eval = eval));
}
