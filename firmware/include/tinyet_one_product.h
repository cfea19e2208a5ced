/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs of sums by the high half of one product; what makes this exact is proved for each layer when code is generated
 * (tinyet/ops/shared/one_product.py). */
#ifndef TINYET_ONE_PRODUCT_H
#define TINYET_ONE_PRODUCT_H

#include "tinyet_common.h"

/* Of the params of convolutions with such outputs, behind their shape. */
typedef struct {
  const TINYET_ROM uint32_t *stream; /* what sums begin with, and how channels are rounded: as each kernel says */
  int32_t padding;                   /* what a tap outside the image reads */
  int32_t two_sided;
  int32_t clamp_low, clamp_high;
} tinyet_one_product_outputs;

/* Of a product of 64 bits. Cores without it make it of four products, rather than by a call. */
static inline __attribute__((always_inline)) int32_t tinyet_upper_half(int32_t a, int32_t b) {
#if defined(__XTENSA__) || (defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1)
  const int32_t a_low = a & 0xffff, a_high = a >> 16, b_low = b & 0xffff, b_high = b >> 16;
  const int32_t lower = a_high * b_low + (int32_t)((uint32_t)a_low * (uint32_t)b_low >> 16);
  const int32_t upper = a_low * b_high + (lower & 0xffff);
  return a_high * b_high + (lower >> 16) + (upper >> 16);
#else
  return (int32_t)((int64_t)a * b >> 32);
#endif
}

/* An int8 in 32 bits: as bytes, compilers would extend it before they store it. sum: times a power of two; away: what is less
 * where it is negative. */
static inline int32_t tinyet_one_product(int32_t sum, int32_t multiplier, int32_t offset, int32_t away, uint32_t shift) {
  const int32_t high = tinyet_upper_half(sum, multiplier);
  const int32_t value = (high - (away & high >> 31) + offset) >> shift;
  return value < -128 ? -128 : value > 127 ? 127 : value;
}

/* Where outputs have narrower bounds than their type. */
static inline void tinyet_clamp_outputs(int8_t *outputs, int32_t count, int32_t low, int32_t high) {
  if (low > -128 || high < 127) {
    for (; count > 0; count--, outputs++) {
      const int32_t value = *outputs;
      *outputs = (int8_t)(value < low ? low : value > high ? high : value);
    }
  }
}

#endif
