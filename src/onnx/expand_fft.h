/* The fast Fourier transform of a constant length. */
#ifndef TN_ONNX_EXPAND_FFT_H
#define TN_ONNX_EXPAND_FFT_H

#include "onnx/expand_common.h"

/* Whether a length is worth it: short, or a product of small primes. */
bool tn_expand_fft_suits(int64_t length);
/* Replaces re and im, both [rows, length] of one dtype, by their transform, or by the inverse one without its factor 1 / length. */
void tn_expand_fft(tn_expand *x, int64_t length, bool inverse, tn_value *re, tn_value *im);

#endif
