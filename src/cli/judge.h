/* Whether a result is what was expected. */
#ifndef TN_CLI_JUDGE_H
#define TN_CLI_JUDGE_H

#include "base/buffer.h"
#include "ir/tensor.h"

/* Same kind, dtype and shape; floats |got - want| <= atol + rtol * |want| and NaN for NaN, everything else equal; sequences, maps
   and optionals item by item. `shape_only`: values don't count. */
typedef struct tn_judge {
    double rtol, atol;
    bool shape_only;
} tn_judge;

/* False with the reason appended to `why`: the first element that differs (index, got, wanted, error), and how many do. */
bool tn_judge_objects(const tn_judge *rule, const tn_object *want, const tn_object *got, tn_text *why);

#endif
