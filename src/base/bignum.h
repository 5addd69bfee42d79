/* Unsigned integers of a fixed largest size, for exact conversion of numbers. Never allocates. */
#ifndef TN_BASE_BIGNUM_H
#define TN_BASE_BIGNUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Enough for 800 decimal digits (2658 bits) against the smallest double: 10^1124 (3734 bits) with 64 bits to spare. */
#define TN_BIGNUM_LIMBS 128

typedef struct tn_bignum {
    int len; /* limbs in use; the highest is not 0 */
    uint32_t limb[TN_BIGNUM_LIMBS];
} tn_bignum;

void tn_bignum_set(tn_bignum *n, uint64_t value);
void tn_bignum_copy(tn_bignum *to, const tn_bignum *from);
/* n * factor + addend; factor > 0. */
void tn_bignum_muladd(tn_bignum *n, uint32_t factor, uint32_t addend);
void tn_bignum_mul_pow10(tn_bignum *n, int power);
void tn_bignum_shl(tn_bignum *n, int bits);
/* n -= other, which is not larger. */
void tn_bignum_sub(tn_bignum *n, const tn_bignum *other);
/* The sign of a - b. */
int tn_bignum_cmp(const tn_bignum *a, const tn_bignum *b);
/* The sign of a + b - c. */
int tn_bignum_cmp_sum(const tn_bignum *a, const tn_bignum *b, const tn_bignum *c);
int tn_bignum_bits(const tn_bignum *n);
/* n / divisor, which is below 10; n becomes the remainder. */
int tn_bignum_digit(tn_bignum *n, const tn_bignum *divisor);

#endif
