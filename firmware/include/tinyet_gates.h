/* SPDX-License-Identifier: Apache-2.0 */
/* Gates of recurrent layers in int16: gemmlowp's logistic and tanh, and the sums that they are of. Qm.n is an int16 that
 * stands for itself / 2^n. The reference in Python is tinyet/ops/shared/gates.py. */
#ifndef TINYET_GATES_H
#define TINYET_GATES_H

#include "tinyet_dot_1x4.h"
#include "tinyet_recurrent.h"

/* Whether gates are computed in the form for cores with DSP; -DTINYET_GATE_DSP=1 computes in that form elsewhere. */
#if !defined(TINYET_GATE_DSP)
#define TINYET_GATE_DSP TINYET_HAS_SIMD32
#endif

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
#define TINYET_GATE_MVE 1
#include "tinyet_gates_mve.h"
#else
#define TINYET_GATE_MVE 0
#endif
#if defined(__AVR__)
#include "tinyet_gate_states_avr.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* a * b of two fixed-point numbers of 16 bits, to nearest, ties upward. */
static inline int32_t tinyet_gate_mul(int32_t a, int32_t b) {
  int32_t half = INT32_C(1) << 14;
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2
  __asm__("" : "+r"(half)); /* in a register, where GCC would not keep it: one instruction multiplies and adds */
#endif
  return (a * b + half) >> 15;
}

/* As int16. */
static inline int32_t tinyet_gate_saturate(int32_t x) {
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2
  int32_t result;
  __asm__("ssat %0, #16, %1" : "=r"(result) : "r"(x) : "cc");
  return result;
#else
  return tinyet_clamp(x, INT16_MIN, INT16_MAX);
#endif
}

/* As int8. */
static inline int8_t tinyet_gate_byte(int32_t x) {
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2
  int32_t result;
  __asm__("ssat %0, #8, %1" : "=r"(result) : "r"(x) : "cc");
  return (int8_t)result;
#else
  return (int8_t)tinyet_clamp(x, INT8_MIN, INT8_MAX);
#endif
}

/* tinyet_round_shift of a product of two gates, for bits in 1 ... 30. */
static inline int32_t tinyet_gate_shift(int32_t product, int32_t bits) {
#ifdef __AVR__ /* where bytes are moved, not shifted bit by bit */
  return tinyet_round_shift(product, bits);
#else
  return (product + (product >> 31) + (INT32_C(1) << (bits - 1))) >> bits;
#endif
}

#ifndef __AVR__
/* That of a * b by 15. */
static inline int32_t tinyet_gate_product(int16_t a, int16_t b) { return tinyet_gate_shift((int32_t)a * b, 15); }
#endif

/* x << bits as int16; bits: 1 or 2, a literal. */
static inline int32_t tinyet_gate_saturate_left(int32_t x, const int32_t bits) {
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2
  int32_t once, twice;
  __asm__("ssat %0, #16, %1, lsl #1" : "=r"(once) : "r"(x) : "cc");
  __asm__("ssat %0, #16, %1, lsl #2" : "=r"(twice) : "r"(x) : "cc");
  return bits == 1 ? once : twice;
#else
  return tinyet_gate_saturate(tinyet_shift_left(x, bits));
#endif
}

#if TINYET_GATE_DSP
/* The upper word of a product, rounded: tinyet_gate_mul where one of the two is shifted to the left by 17, and less than
 * 2^14. A larger one is less by 2^15 when shifted, so the other factor is added. */
static inline int32_t tinyet_gate_upper(int32_t a, int32_t b) {
#if TINYET_HAS_SIMD32
  int32_t result;
  __asm__("smmulr %0, %1, %2" : "=r"(result) : "r"(a), "r"(b));
  return result;
#else
  return (int32_t)(((int64_t)a * b + (INT64_C(1) << 31)) >> 32);
#endif
}
static inline int32_t tinyet_gate_add_upper(int32_t start, int32_t a, int32_t b) {
#if TINYET_HAS_SIMD32
  int32_t result;
  __asm__("smmlar %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(start));
  return result;
#else
  return start + (int32_t)(((int64_t)a * b + (INT64_C(1) << 31)) >> 32);
#endif
}
#define TINYET_GATE_LEFT(x) tinyet_shift_left(x, 17)
#endif

#if !TINYET_GATE_MVE && !defined(__AVR__)
static inline void tinyet_gate_clear(int16_t *values, int32_t count) { memset(values, 0, (size_t)count * sizeof *values); }

/* x times a constant below 2^14. */
static inline int32_t tinyet_gate_times(int32_t x, int32_t factor) {
#if TINYET_GATE_DSP
  return tinyet_gate_upper(x, TINYET_GATE_LEFT(factor));
#else
  return tinyet_gate_mul(x, factor);
#endif
}

/* exp(n / 2^15) for n in -2^22 ... -1: Q0.15. A polynomial on [-1/4, 0), around -1/8, whose sums neither overflow nor are
 * negative where they are halved, times a constant for each bit of the remaining multiple of 1/4. */
static inline int32_t tinyet_gate_exp(int32_t n) {
  const int32_t x = (n & 8191) - 4096;
#if TINYET_GATE_DSP
  const int32_t left = TINYET_GATE_LEFT(x), x2 = tinyet_gate_upper(left, x), x3 = tinyet_gate_upper(left, x2);
  const int32_t sum = ((x2 * x2 + 81920) >> 17) + x3; /* x2 * x2, and a fourth of that: both roundings at once */
  const int32_t series = tinyet_gate_add_upper(x2, sum, TINYET_GATE_LEFT(10923));
  const int32_t rounded = x + ((series + 1) >> 1);
  int32_t result = tinyet_gate_add_upper(rounded + 28918, rounded, TINYET_GATE_LEFT(28918));
#else
  const int32_t x2 = tinyet_gate_mul(x, x);
  const int32_t sum = ((x2 * x2 + 81920) >> 17) + tinyet_gate_mul(x2, x);
  const int32_t series = tinyet_gate_mul(sum, 10923) + x2;
  int32_t result = ((x + ((series + 1) >> 1)) * 28918 + (28918 * 32768 + 16384)) >> 15;
#endif
#if TINYET_GATE_DSP && TINYET_HAS_SIMD32
  uint32_t flags;
  __asm__("lsls %1, %2, #18\n\t"
          "it pl\n\t"
          "smmlarpl %0, %0, %3, %0\n\t"
          "it cc\n\t"
          "smmlarcc %0, %0, %4, %0"
          : "+r"(result), "=&r"(flags)
          : "r"(n), "r"(TINYET_GATE_LEFT(25520)), "r"(TINYET_GATE_LEFT(19875))
          : "cc");
#else
  if ((n & (INT32_C(1) << 13)) == 0) {
    result = tinyet_gate_mul(result, 25520); /* exp(-1/4) */
  }
  if ((n & (INT32_C(1) << 14)) == 0) {
    result = tinyet_gate_mul(result, 19875);
  }
#endif
  if (n < -INT32_C(32768)) {
    if ((n & (INT32_C(1) << 15)) == 0) {
      result = tinyet_gate_times(result, 12055);
    }
    if ((n & (INT32_C(1) << 16)) == 0) {
      result = tinyet_gate_times(result, 4435);
    }
    if (n < -(INT32_C(1) << 17)) {
      if ((n & (INT32_C(1) << 17)) == 0) {
        result = tinyet_gate_times(result, 600);
      }
      if ((n & (INT32_C(1) << 18)) == 0) {
        result = tinyet_gate_times(result, 11);
      }
      result = n < -(INT32_C(1) << 19) ? 0 : result; /* exp(-16) is nothing */
    }
  }
  return result;
}

/* 2 / (1 + x) for x in [0, 1), Q0.15 to Q2.13: three Newton steps. */
static inline int32_t tinyet_gate_reciprocal(int32_t x) {
#if TINYET_GATE_DSP
  const int32_t less = (int32_t)((((uint32_t)x & ~UINT32_C(1)) << 16) ^ UINT32_C(0x80000000)); /* (1 + x) / 2 - 1 */
  int32_t y = tinyet_gate_add_upper(23130 - 15420, less, -15420);
  int32_t one = INT32_C(1) << 30;
  __asm__("" : "+r"(one)); /* in a register: otherwise GCC shifts first, then subtracts from a constant */
#define TINYET_GATE_NEWTON() \
  y += 4 * tinyet_gate_upper(y, one - TINYET_GATE_LEFT(tinyet_gate_add_upper(y, less, y)))
#else
  const int32_t half_denominator = (x + INT16_MAX + 1) >> 1;
  int32_t y = 23130 + tinyet_gate_mul(half_denominator, -15420);
#define TINYET_GATE_NEWTON() y += 4 * tinyet_gate_mul(y, 8192 - tinyet_gate_mul(half_denominator, y))
#endif
  TINYET_GATE_NEWTON();
  TINYET_GATE_NEWTON();
  TINYET_GATE_NEWTON();
#undef TINYET_GATE_NEWTON
  return y;
}

/* Of each value. Q3.12 to Q0.15. */
static __attribute__((noinline, unused)) void tinyet_gate_sigmoid(int16_t *values, int32_t count) {
  for (; count != 0; count--) {
    const int32_t x = *values, sign = x >> 31;
    int32_t y = 16384;
    if (x != 0) {
      y = tinyet_gate_saturate_left(tinyet_gate_reciprocal(tinyet_gate_exp((sign - (x ^ sign)) * 8)), 1);
      y = (y ^ sign) & INT16_MAX; /* 32767 - y of a negative one */
    }
    *values++ = (int16_t)y;
  }
}

/* Of each value, of so many integer bits, 0 ... 6, to Q0.15. */
static __attribute__((noinline, unused)) void tinyet_gate_tanh(int16_t *values, int32_t count, int32_t integer_bits) {
  for (; count != 0; count--) {
    const int32_t x = *values, sign = x >> 31;
    int32_t y = 0;
    if (x != 0) {
      const int32_t n = tinyet_shift_left(sign - (x ^ sign), integer_bits + 1);
      y = tinyet_gate_saturate_left(tinyet_gate_reciprocal(tinyet_gate_exp(n)) - 8192, 2);
      y = (y ^ sign) - sign;
    }
    *values++ = (int16_t)y;
  }
}
#endif

#ifndef __AVR__
/* tinyet_requantize of a sum whose form is not negative. The sign of its product is its own, but where that is rounded to 0,
 * which is 0 with and without. */
static inline int32_t tinyet_gate_requantize(int32_t sum, int32_t multiplier, int32_t form) {
#if TINYET_GATE_DSP
  const int32_t high = tinyet_gate_add_upper(sum, sum, tinyet_shift_left(multiplier, 1)); /* 2^30 or more */
#else
  const int32_t high = tinyet_high_mul_twice(sum, multiplier);
#endif
  return (high + (sum >> 31) + (INT32_C(1) << form)) >> (form + 1);
}
#endif

/* Adds what four rows come to, saturated. */
static inline void tinyet_gate_add(int32_t a, int32_t b, int32_t c, int32_t d, int32_t multiplier, int32_t form,
                                   int16_t *sums) {
  if (__builtin_expect(form >= 0, 1)) {
    a = tinyet_gate_requantize(a, multiplier, form), b = tinyet_gate_requantize(b, multiplier, form);
    c = tinyet_gate_requantize(c, multiplier, form), d = tinyet_gate_requantize(d, multiplier, form);
  } else {
    a = tinyet_requantize_any(a, multiplier, form + 31), b = tinyet_requantize_any(b, multiplier, form + 31);
    c = tinyet_requantize_any(c, multiplier, form + 31), d = tinyet_requantize_any(d, multiplier, form + 31);
  }
  sums[0] = (int16_t)tinyet_gate_saturate(sums[0] + a), sums[1] = (int16_t)tinyet_gate_saturate(sums[1] + b);
  sums[2] = (int16_t)tinyet_gate_saturate(sums[2] + c), sums[3] = (int16_t)tinyet_gate_saturate(sums[3] + d);
}

#ifndef __AVR__
/* Adds to sums, [gates][units], what a row of the part's inputs comes to in Q3.12, saturated. units: rounded up to fours. */
static __attribute__((noinline, unused)) void tinyet_gate_sums(const int8_t *input, const tinyet_gate_part_s8 *part,
                                                               int32_t gates, int32_t units, int16_t *sums) {
  const int32_t blocks = part->depth / 4, rest = part->depth & 3;
  const TINYET_ROM int8_t *w = part->weights;
  const TINYET_ROM int32_t *bias = part->bias;
  for (int32_t gate = 0; gate < gates; gate++) {
    const int32_t multiplier = part->multiplier[gate], form = part->form[gate];
    for (int32_t n = units; n != 0; n -= 4) {
      int32_t rows[4] = {bias[0], bias[1], bias[2], bias[3]};
      w = tinyet_dot_1x4(input, w, blocks, rest, rows);
      w += rest != 0 ? 16 - rest : 0;
      bias += 4;
      tinyet_gate_add(rows[0], rows[1], rows[2], rows[3], multiplier, form, sums);
      sums += 4;
    }
  }
}
#endif

#ifdef __cplusplus
}
#endif

#endif
