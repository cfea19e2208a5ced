/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels for int16 activations on cores with DSP instructions share: see tinyet_dsp.h.
 *
 * The specification shortens the multiplier to 15 bits, m, and rounds once, ties upward:
 *   out = floor((acc * m + 2^(t-1)) / 2^t)
 * With an exponent E for all channels of a layer and M = m << (32 + E - t), that is (acc * M + 2^31) >> 32 for E = 0, and else
 * ((acc * M >> 32) + 2^(E-1)) >> E. The generator has proved that nothing overflows
 * (tinyet/delegates/cortex_m/rounding_s16.py). */
#ifndef TINYET_S16_DSP_H
#define TINYET_S16_DSP_H

#include "tinyet_dsp.h"

/* How sums become outputs, for all channels of a layer; literals. */
typedef struct {
  int32_t exponent;
  int32_t low, high;
} tinyet_rounding_s16_dsp;

#if TINYET_DSP_ASM
/* The upper word of a * b, rounded to nearest, ties upward. */
TINYET_DSP_INLINE int32_t tinyet_smmulr_dsp(int32_t a, int32_t b) {
  int32_t result;
  __asm__("smmulr %0, %1, %2" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
/* x >> shift, within int16, or within 0 ... 32767 where positive; literals */
TINYET_DSP_INLINE int32_t tinyet_saturate_s16_dsp(int32_t x, const int32_t shift, const int32_t positive) {
  int32_t result;
  if (positive) {
    __asm__(".if %c2\n\tusat %0, #15, %1, asr #%c2\n\t.else\n\tusat %0, #15, %1\n\t.endif"
            : "=r"(result)
            : "r"(x), "i"(shift));
  } else {
    __asm__(".if %c2\n\tssat %0, #16, %1, asr #%c2\n\t.else\n\tssat %0, #16, %1\n\t.endif"
            : "=r"(result)
            : "r"(x), "i"(shift));
  }
  return result;
}
/* An output. By an instruction of its own: GCC joins neighbours to words and these to an STRD, though nothing says that they are
 * aligned. */
TINYET_DSP_INLINE void tinyet_store_s16_dsp(int16_t *to, int32_t value) {
  __asm__("strh %1, %0" : "=m"(*to) : "r"(value));
}
#else
TINYET_DSP_INLINE void tinyet_store_s16_dsp(int16_t *to, int32_t value) { *to = (int16_t)value; }
TINYET_DSP_INLINE int32_t tinyet_smmulr_dsp(int32_t a, int32_t b) { return tinyet_smmlar_dsp(a, b, 0); }
TINYET_DSP_INLINE int32_t tinyet_saturate_s16_dsp(int32_t x, const int32_t shift, const int32_t positive) {
  return tinyet_clamp(x >> shift, positive ? 0 : INT16_MIN, INT16_MAX);
}
#endif

/* The output of the upper word of a product, or of what E more bits are to be rounded away from. */
TINYET_DSP_INLINE int32_t tinyet_clamp_s16_dsp(int32_t upper, const tinyet_rounding_s16_dsp rounding) {
  const int32_t positive = rounding.low >= 0;
  int32_t value = tinyet_saturate_s16_dsp(upper, rounding.exponent, positive);
  /* The compiler does not know that the value is within the range already. */
  if (rounding.low > (positive ? 0 : INT16_MIN) || rounding.high < INT16_MAX) {
    value = tinyet_clamp(value, rounding.low, rounding.high);
  }
  return value;
}

/* The output of a sum. */
TINYET_DSP_INLINE int32_t tinyet_round_s16_dsp(int32_t sum, int32_t multiplier, const tinyet_rounding_s16_dsp rounding) {
  const int32_t upper = rounding.exponent == 0 ? tinyet_smmulr_dsp(sum, multiplier)
                                               : tinyet_smmla_dsp(sum, multiplier, 1 << (rounding.exponent - 1));
  return tinyet_clamp_s16_dsp(upper, rounding);
}

/* The 64-bit start of a sum of products with M, which rounds its upper word. */
TINYET_DSP_INLINE int64_t tinyet_half_s16_dsp(const tinyet_rounding_s16_dsp rounding) {
  return INT64_C(1) << (31 + rounding.exponent);
}

/* A pair of values from any even address. */
TINYET_DSP_INLINE uint32_t tinyet_load_int16x2_dsp(const int16_t *from) {
  uint32_t pair;
  memcpy(&pair, from, sizeof pair);
  return pair;
}

/* Values as pairs, into every `width`-th word. */
TINYET_DSP_INLINE void tinyet_put_int16x2_dsp(uint32_t *to, const int16_t *from, const int32_t count,
                                              const int32_t width) {
#pragma GCC unroll 8
  for (int32_t i = 0; i < (count & ~1); i += 2) {
    *to = tinyet_load_int16x2_dsp(from + i);
    to += width;
  }
  if (count & 1) {
    *to = (uint16_t)from[count - 1]; /* the upper half meets a weight of zero */
  }
}

#endif
