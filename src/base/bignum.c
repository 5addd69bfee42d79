/* Unsigned integers of a fixed largest size, for exact conversion of numbers. */
#include "base/bignum.h"

#include <assert.h>
#include <string.h>

void tn_bignum_set(tn_bignum *n, uint64_t value) {
    n->limb[0] = (uint32_t)value;
    n->limb[1] = (uint32_t)(value >> 32);
    n->len = n->limb[1] ? 2 : n->limb[0] ? 1 : 0;
}

void tn_bignum_copy(tn_bignum *to, const tn_bignum *from) {
    to->len = from->len;
    memcpy(to->limb, from->limb, (size_t)from->len * sizeof from->limb[0]);
}

static void push(tn_bignum *n, uint32_t limb) {
    assert(n->len < TN_BIGNUM_LIMBS);
    n->limb[n->len++] = limb;
}

void tn_bignum_muladd(tn_bignum *n, uint32_t factor, uint32_t addend) {
    uint64_t carry = addend;
    for (int i = 0; i < n->len; i++) {
        carry += (uint64_t)n->limb[i] * factor;
        n->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        push(n, (uint32_t)carry);
}

void tn_bignum_mul_pow10(tn_bignum *n, int power) {
    static const uint32_t pow5[13] = {1,     5,      25,      125,     625,      3125,     15625,
                                      78125, 390625, 1953125, 9765625, 48828125, 244140625};
    for (int left = power; left > 0; left -= 13)
        tn_bignum_muladd(n, left >= 13 ? 1220703125u : pow5[left], 0);
    tn_bignum_shl(n, power);
}

void tn_bignum_shl(tn_bignum *n, int bits) {
    int limbs = bits / 32, rest = bits % 32;
    if (n->len == 0 || bits == 0)
        return;
    if (rest) {
        uint32_t carry = 0;
        for (int i = 0; i < n->len; i++) {
            uint32_t limb = n->limb[i];
            n->limb[i] = limb << rest | carry;
            carry = limb >> (32 - rest);
        }
        if (carry)
            push(n, carry);
    }
    if (limbs) {
        assert(n->len + limbs <= TN_BIGNUM_LIMBS);
        memmove(n->limb + limbs, n->limb, (size_t)n->len * sizeof n->limb[0]);
        memset(n->limb, 0, (size_t)limbs * sizeof n->limb[0]);
        n->len += limbs;
    }
}

/* n -= other * times, which is not larger. */
static void sub_multiple(tn_bignum *n, const tn_bignum *other, uint32_t times) {
    uint64_t borrow = 0;
    for (int i = 0; i < n->len; i++) {
        uint64_t take = borrow + (i < other->len ? (uint64_t)other->limb[i] * times : 0);
        uint32_t low = (uint32_t)take;
        borrow = (take >> 32) + (n->limb[i] < low);
        n->limb[i] -= low;
    }
    while (n->len && n->limb[n->len - 1] == 0)
        n->len--;
}

void tn_bignum_sub(tn_bignum *n, const tn_bignum *other) {
    sub_multiple(n, other, 1);
}

int tn_bignum_cmp(const tn_bignum *a, const tn_bignum *b) {
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    for (int i = a->len - 1; i >= 0; i--)
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

int tn_bignum_cmp_sum(const tn_bignum *a, const tn_bignum *b, const tn_bignum *c) {
    int longest = a->len > b->len ? a->len : b->len;
    if (longest < c->len - 1)
        return -1;
    if (longest > c->len)
        return 1;
    tn_bignum sum;
    uint64_t carry = 0;
    for (int i = 0; i < longest; i++) {
        carry += (uint64_t)(i < a->len ? a->limb[i] : 0) + (i < b->len ? b->limb[i] : 0);
        sum.limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    sum.len = longest;
    if (carry)
        push(&sum, (uint32_t)carry);
    return tn_bignum_cmp(&sum, c);
}

int tn_bignum_bits(const tn_bignum *n) {
    return n->len ? 32 * n->len - __builtin_clz(n->limb[n->len - 1]) : 0;
}

int tn_bignum_digit(tn_bignum *n, const tn_bignum *divisor) {
    if (n->len < divisor->len)
        return 0;
    /* Quotient of the leading limbs, never too large; the loop makes up for what it lacks. */
    int top = divisor->len - 1;
    uint64_t high = n->limb[top] | (n->len > divisor->len ? (uint64_t)n->limb[top + 1] << 32 : 0);
    uint32_t digit = (uint32_t)(high / ((uint64_t)divisor->limb[top] + 1));
    if (digit)
        sub_multiple(n, divisor, digit);
    while (tn_bignum_cmp(n, divisor) >= 0) {
        sub_multiple(n, divisor, 1);
        digit++;
    }
    return (int)digit;
}
