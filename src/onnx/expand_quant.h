/* Shared by the expansions of quantised operators. */
#ifndef TN_ONNX_EXPAND_QUANT_H
#define TN_ONNX_EXPAND_QUANT_H

#include "onnx/expand_common.h"

/* 8- and 4-bit floats. */
bool tn_quant_is_float(tn_dtype t);
/* What quantising makes: integers of at most 16 bits, floats of at most 8. */
bool tn_quant_is_type(tn_dtype t);
/* Whether an input is known to have one element; may have. */
bool tn_quant_is_single(tn_expand *x, uint32_t input);
bool tn_quant_may_be_single(tn_expand *x, uint32_t input);
/* Whether an input, a zero point, is absent or a constant all zero. */
bool tn_quant_zero(tn_expand *x, uint32_t input);
/* y, a float in units of the scale, as `to`: integers are y rounded to nearest even plus the zero point (a float; null: 0), kept
   inside the type's range; floats are y plus the zero point, rounded once. */
tn_value tn_quant_saturate(tn_expand *x, tn_value y, tn_value zero, tn_dtype to, bool saturate);

#endif
