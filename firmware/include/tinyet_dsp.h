/* SPDX-License-Identifier: Apache-2.0 */
/* The DSP instructions of Cortex-M4, M7 and M33 that the specialised int8 kernels are made of, and their requantization.
 *
 * Those kernels are always-inline functions, called with literal constants by small wrappers in the generated model: one
 * wrapper is one kernel for one shape. Their multiply loops need all 14 free registers of the core, so they are inline
 * assembly; everywhere else (another core, a sanitizer, a build with -O0) plain C computes the same bits. -DTINYET_DSP_ASM=0
 * chooses plain C, which is needed where a register is reserved (-ffixed-r9). */
#ifndef TINYET_DSP_H
#define TINYET_DSP_H

#include <string.h>

#include "tinyet_common.h"

#if !defined(TINYET_DSP_ASM)
#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__OPTIMIZE__)
#define TINYET_DSP_ASM 1
#else
#define TINYET_DSP_ASM 0
#endif
#endif

#define TINYET_DSP_INLINE static inline __attribute__((always_inline))
/* Hides what is known of a loop's counter, so that the loop is not unrolled. */
#define TINYET_DSP_UNKNOWN(x) __asm__("" : "+r"(x))
/* A wrapper of the generated model. GCC optimizes it whatever the flags say: with -Og alone, its constants would not be
 * constant enough for assembly. */
#if TINYET_DSP_ASM && !defined(__clang__)
#define TINYET_DSP_FUNCTION __attribute__((noinline, optimize("O2", "omit-frame-pointer"))) TINYET_FUNCTION
#else
#define TINYET_DSP_FUNCTION __attribute__((noinline)) TINYET_FUNCTION
#endif

/* ---- single instructions; a "pair" is two int16 in one word, the first in the lower half ---- */

TINYET_DSP_INLINE int32_t tinyet_half_dsp(uint32_t a, int32_t index) { return (int16_t)(uint16_t)(a >> (16 * index)); }

#if TINYET_DSP_ASM
#define TINYET_DSP_UNARY(name, text)                           \
  TINYET_DSP_INLINE uint32_t tinyet_##name##_dsp(uint32_t a) { \
    uint32_t result;                                           \
    __asm__(text : "=r"(result) : "r"(a));                     \
    return result;                                             \
  }
#define TINYET_DSP_BINARY(name, text)                                      \
  TINYET_DSP_INLINE uint32_t tinyet_##name##_dsp(uint32_t a, uint32_t b) { \
    uint32_t result;                                                       \
    __asm__(text : "=r"(result) : "r"(a), "r"(b));                         \
    return result;                                                         \
  }
#define TINYET_DSP_TERNARY(name, text)                                             \
  TINYET_DSP_INLINE int32_t tinyet_##name##_dsp(int32_t a, int32_t b, int32_t c) { \
    int32_t result;                                                                \
    __asm__(text : "=r"(result) : "r"(a), "r"(b), "r"(c));                         \
    return result;                                                                 \
  }
TINYET_DSP_TERNARY(smmla, "smmla %0, %1, %2, %3")
TINYET_DSP_TERNARY(smmlar, "smmlar %0, %1, %2, %3")
TINYET_DSP_TERNARY(smlabb, "smlabb %0, %1, %2, %3")
TINYET_DSP_TERNARY(smlatb, "smlatb %0, %1, %2, %3")
TINYET_DSP_UNARY(even_bytes, "sxtb16 %0, %1")
TINYET_DSP_UNARY(odd_bytes, "sxtb16 %0, %1, ror #8")
TINYET_DSP_BINARY(low_int16x2, "pkhbt %0, %1, %2, lsl #16")
TINYET_DSP_BINARY(high_int16x2, "pkhtb %0, %2, %1, asr #16")
TINYET_DSP_BINARY(add_int16x2, "sadd16 %0, %1, %2")
TINYET_DSP_BINARY(subtract_int16x2, "ssub16 %0, %1, %2")
TINYET_DSP_BINARY(halved, "uhadd16 %0, %1, %2")
TINYET_DSP_BINARY(add_even_bytes, "sxtab16 %0, %1, %2")
TINYET_DSP_BINARY(add_odd_bytes, "sxtab16 %0, %1, %2, ror #8")
TINYET_DSP_INLINE int32_t tinyet_smlad_dsp(uint32_t a, uint32_t b, int32_t c) {
  int32_t result;
  __asm__("smlad %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}
TINYET_DSP_INLINE int32_t tinyet_saturate_dsp(int32_t x) {
  int32_t result;
  __asm__("ssat %0, #8, %1" : "=r"(result) : "r"(x));
  return result;
}
/* One statement: the compiler does not know of the flags between the two. */
TINYET_DSP_INLINE uint32_t tinyet_greater_bytes_dsp(uint32_t a, uint32_t b) {
  uint32_t result;
  __asm__("ssub8 %0, %1, %2\n\tsel %0, %1, %2" : "=&r"(result) : "r"(a), "r"(b));
  return result;
}
/* shift: 1 ... 31, a literal */
TINYET_DSP_INLINE int32_t tinyet_saturate_shifted_dsp(int32_t x, const int32_t shift) {
  int32_t result;
  __asm__("ssat %0, #8, %1, asr %2" : "=r"(result) : "r"(x), "i"(shift));
  return result;
}
#undef TINYET_DSP_UNARY
#undef TINYET_DSP_BINARY
#undef TINYET_DSP_TERNARY
#else
TINYET_DSP_INLINE int32_t tinyet_byte_dsp(uint32_t a, int32_t index) { return (int8_t)(uint8_t)(a >> (8 * index)); }
/* The greater of each two of four int8. */
TINYET_DSP_INLINE uint32_t tinyet_greater_bytes_dsp(uint32_t a, uint32_t b) {
  uint32_t result = 0;
  for (int32_t i = 0; i < 4; i++) {
    const int32_t x = tinyet_byte_dsp(a, i), y = tinyet_byte_dsp(b, i);
    result |= ((uint32_t)(x >= y ? x : y) & 0xffu) << (8 * i);
  }
  return result;
}
/* The lower halves of a and b. */
TINYET_DSP_INLINE uint32_t tinyet_low_int16x2_dsp(uint32_t a, uint32_t b) { return (a & 0xffffu) | (b << 16); }
/* The upper halves of a and b. */
TINYET_DSP_INLINE uint32_t tinyet_high_int16x2_dsp(uint32_t a, uint32_t b) { return (a >> 16) | (b & 0xffff0000u); }
/* Bytes 0 and 2 of four int8, as a pair. */
TINYET_DSP_INLINE uint32_t tinyet_even_bytes_dsp(uint32_t a) {
  return tinyet_low_int16x2_dsp((uint32_t)tinyet_byte_dsp(a, 0), (uint32_t)tinyet_byte_dsp(a, 2));
}
/* Bytes 1 and 3. */
TINYET_DSP_INLINE uint32_t tinyet_odd_bytes_dsp(uint32_t a) { return tinyet_even_bytes_dsp(a >> 8); }
/* Pairs are added and subtracted half by half. */
TINYET_DSP_INLINE uint32_t tinyet_add_int16x2_dsp(uint32_t a, uint32_t b) {
  return tinyet_low_int16x2_dsp(a + b, (a >> 16) + (b >> 16));
}
TINYET_DSP_INLINE uint32_t tinyet_subtract_int16x2_dsp(uint32_t a, uint32_t b) {
  return tinyet_low_int16x2_dsp(a - b, (a >> 16) - (b >> 16));
}
/* c and the lower half, or the upper half, of a times the lower half of b. */
TINYET_DSP_INLINE int32_t tinyet_smlabb_dsp(int32_t a, int32_t b, int32_t c) {
  const int32_t left = (int16_t)a, right = (int16_t)b;
  return left * right + c;
}
TINYET_DSP_INLINE int32_t tinyet_smlatb_dsp(int32_t a, int32_t b, int32_t c) {
  const int32_t right = (int16_t)b;
  return (a >> 16) * right + c;
}
/* Half of the sums of unsigned halves. */
TINYET_DSP_INLINE uint32_t tinyet_halved_dsp(uint32_t a, uint32_t b) {
  return tinyet_low_int16x2_dsp(((a & 0xffffu) + (b & 0xffffu)) >> 1, ((a >> 16) + (b >> 16)) >> 1);
}
TINYET_DSP_INLINE uint32_t tinyet_add_even_bytes_dsp(uint32_t a, uint32_t b) {
  return tinyet_add_int16x2_dsp(a, tinyet_even_bytes_dsp(b));
}
TINYET_DSP_INLINE uint32_t tinyet_add_odd_bytes_dsp(uint32_t a, uint32_t b) {
  return tinyet_add_int16x2_dsp(a, tinyet_odd_bytes_dsp(b));
}
/* c + a0 * b0 + a1 * b1, modulo 2^32 */
TINYET_DSP_INLINE int32_t tinyet_smlad_dsp(uint32_t a, uint32_t b, int32_t c) {
  const int32_t first = tinyet_half_dsp(a, 0) * tinyet_half_dsp(b, 0);
  const int32_t second = tinyet_half_dsp(a, 1) * tinyet_half_dsp(b, 1);
  return (int32_t)((uint32_t)c + (uint32_t)first + (uint32_t)second);
}
/* c + the upper word of a * b, modulo 2^32 */
TINYET_DSP_INLINE int32_t tinyet_smmla_dsp(int32_t a, int32_t b, int32_t c) {
  return (int32_t)((uint32_t)c + (uint32_t)(((int64_t)a * b) >> 32));
}
/* The same, rounded to nearest, ties upward. */
TINYET_DSP_INLINE int32_t tinyet_smmlar_dsp(int32_t a, int32_t b, int32_t c) {
  return (int32_t)((uint32_t)c + (uint32_t)(((int64_t)a * b + INT64_C(0x80000000)) >> 32));
}
TINYET_DSP_INLINE int32_t tinyet_saturate_dsp(int32_t x) { return tinyet_clamp(x, -128, 127); }
TINYET_DSP_INLINE int32_t tinyet_saturate_shifted_dsp(int32_t x, const int32_t shift) {
  return tinyet_saturate_dsp(x >> shift);
}
#endif

/* Four bytes from any address. */
TINYET_DSP_INLINE uint32_t tinyet_load_dsp(const int8_t *source) {
  uint32_t word;
  memcpy(&word, source, sizeof word);
  return word;
}

/* Four bytes to any address. */
TINYET_DSP_INLINE void tinyet_store_dsp(int8_t *to, uint32_t word) { memcpy(to, &word, sizeof word); }

/* An int8 value as a pair of twice itself. */
TINYET_DSP_INLINE uint32_t tinyet_both_dsp(int32_t value) {
  return tinyet_low_int16x2_dsp((uint32_t)value, (uint32_t)value);
}

/* ---- requantization ----
 *
 * The specification rounds twice (tinyet_requantize). For a multiplier m of 2^30 ... 2^31 - 1 and a right shift e >= 1, both
 * roundings are one floor division:
 *   out = zero_point + floor((acc * m + 2^30 + 2^(30+e) - [acc < 0] * 2^31) / 2^(31+e))
 * ONE_SIDED: where the output is clamped from the zero point on (ReLU), the term of negative sums cannot be seen. With one
 *   exponent E for all channels and acc shifted left by s = 1 + E - e >= 2, the upper word of a product is enough:
 *   (hi(acc << s, m) + offset) >> E, with offset = 2^(E-1) + 2^(s-2) + (zero_point << E).
 * TWO_SIDED: hi(acc << 1, m), rounded, is the first rounding; then (that - [acc < 0] + offset) >> e, with
 *   offset = 2^(e-1) + (zero_point << e).
 * PLAIN: tinyet_requantize, offset = zero_point, for what the other two cannot take.
 * The generator has proved that nothing overflows (tinyet/delegates/cortex_m/rounding.py). */
enum { TINYET_DSP_ONE_SIDED = 0, TINYET_DSP_TWO_SIDED = 1, TINYET_DSP_PLAIN = 2 };

/* How sums become outputs, for all channels of a layer; literals. */
typedef struct {
  int32_t form;
  int32_t exponent; /* E of ONE_SIDED */
  int32_t low, high;
} tinyet_rounding_dsp;

/* The shift to the left that a sum has before its multiplication; kernels may apply it to weights and bias instead. */
TINYET_DSP_INLINE int32_t tinyet_before_dsp(int32_t shift, const tinyet_rounding_dsp rounding) {
  return rounding.form == TINYET_DSP_ONE_SIDED ? shift : (rounding.form == TINYET_DSP_TWO_SIDED ? 1 : 0);
}

/* The output of a sum that is shifted already. */
TINYET_DSP_INLINE int8_t tinyet_round_shifted_dsp(int32_t sum, int32_t multiplier, int32_t offset, int32_t shift,
                                                  const tinyet_rounding_dsp rounding) {
  int32_t value;
  if (rounding.form == TINYET_DSP_ONE_SIDED) {
    value = tinyet_saturate_shifted_dsp(tinyet_smmla_dsp(sum, multiplier, offset), rounding.exponent);
  } else if (rounding.form == TINYET_DSP_TWO_SIDED) {
    value = tinyet_saturate_dsp((tinyet_smmlar_dsp(sum, multiplier, offset) + (sum >> 31)) >> shift);
  } else {
    value = tinyet_saturate_dsp(tinyet_requantize(sum, multiplier, shift) + offset);
  }
  /* The compiler does not know that the value is within int8 already. */
  if (rounding.low > -128 || rounding.high < 127) {
    value = tinyet_clamp(value, rounding.low, rounding.high);
  }
  return (int8_t)value;
}

TINYET_DSP_INLINE int8_t tinyet_round_dsp(int32_t acc, int32_t multiplier, int32_t offset, int32_t shift,
                                          const tinyet_rounding_dsp rounding) {
  const int32_t sum = tinyet_shift_left(acc, tinyet_before_dsp(shift, rounding));
  return tinyet_round_shifted_dsp(sum, multiplier, offset, shift, rounding);
}

#endif
