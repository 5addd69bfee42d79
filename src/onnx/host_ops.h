/* Rows of operators that take the ONNX node as it is and run on the host. */
#ifndef TN_ONNX_HOST_OPS_H
#define TN_ONNX_HOST_OPS_H

#include "ir/op.h"

extern const tn_op tn_host_nms; /* NonMaxSuppression */

#endif
