/* SPDX-License-Identifier: Apache-2.0 */
/* Gates of recurrent layers in int16: gemmlowp's logistic and tanh, and the sums that they are of. Qm.n is an int16 that
 * stands for itself / 2^n. The twin in Python is tinyet/ops/shared/gates.py. */
#ifndef TINYET_GATES_H
#define TINYET_GATES_H

#include "tinyet_recurrent.h"
#include "tinyet_rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* a * b of two fixed-point numbers of 16 bits, to nearest, ties upward. On Arm the half stays in a register, where GCC would
 * not keep it: one instruction multiplies and adds. */
static inline int32_t tinyet_gate_mul(int32_t a, int32_t b) {
  int32_t half = INT32_C(1) << 14;
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2
  __asm__("" : "+r"(half));
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

/* exp(-a) for a in 1 ... 2^15, of so many integer bits, 1 ... 7: Q0.15. A polynomial on [-1/4, 0), around -1/8, whose sums
 * neither overflow nor are negative where they are halved, times a constant for each bit of the remaining multiple of 1/4. */
static inline int32_t tinyet_gate_exp(int32_t a, int32_t integer_bits) {
  const int32_t multiple = (a - 1) >> (13 - integer_bits); /* -a = rest - multiple / 4 with rest in [-1/4, 0) */
  const int32_t x = tinyet_shift_left(multiple << (13 - integer_bits), integer_bits) + 4096 - tinyet_shift_left(a, integer_bits);
  const int32_t x2 = tinyet_gate_mul(x, x), x4 = tinyet_gate_mul(x2, x2);
  const int32_t series = tinyet_gate_mul(((x4 + 2) >> 2) + tinyet_gate_mul(x2, x), 10923) + x2;
  int32_t result = 28918 + tinyet_gate_mul(x + ((series + 1) >> 1), 28918);
  if ((multiple & 1) != 0) {
    result = tinyet_gate_mul(result, 25520); /* exp(-1/4) */
  }
  if ((multiple & 2) != 0) {
    result = tinyet_gate_mul(result, 19875);
  }
  if ((multiple & 4) != 0) {
    result = tinyet_gate_mul(result, 12055);
  }
  if ((multiple & 8) != 0) {
    result = tinyet_gate_mul(result, 4435);
  }
  if (multiple >= 16) {
    if ((multiple & 16) != 0) {
      result = tinyet_gate_mul(result, 600);
    }
    if ((multiple & 32) != 0) {
      result = tinyet_gate_mul(result, 11);
    }
    result = multiple >= 64 ? 0 : result; /* exp(-16) is nothing */
  }
  return result;
}

/* 2 / (1 + x) for x in [0, 1), Q0.15 to Q2.13: three Newton steps. */
static inline int32_t tinyet_gate_reciprocal(int32_t x) {
  const int32_t half_denominator = (x + INT16_MAX + 1) >> 1;
  int32_t y = 23130 + tinyet_gate_mul(half_denominator, -15420);
  y += 4 * tinyet_gate_mul(y, 8192 - tinyet_gate_mul(half_denominator, y));
  y += 4 * tinyet_gate_mul(y, 8192 - tinyet_gate_mul(half_denominator, y));
  return y + 4 * tinyet_gate_mul(y, 8192 - tinyet_gate_mul(half_denominator, y));
}

/* Q3.12 to Q0.15. */
static __attribute__((noinline, unused)) int32_t tinyet_gate_sigmoid(int32_t x) {
  if (x == 0) {
    return 16384;
  }
  const int32_t y = 2 * tinyet_gate_reciprocal(tinyet_gate_exp(x < 0 ? -x : x, 3));
  const int32_t positive = tinyet_gate_saturate(y);
  return x > 0 ? positive : INT16_MAX - positive;
}

/* Of so many integer bits, 0 ... 6, to Q0.15. */
static __attribute__((noinline, unused)) int32_t tinyet_gate_tanh(int32_t x, int32_t integer_bits) {
  if (x == 0) {
    return 0;
  }
  const int32_t y = 4 * (tinyet_gate_reciprocal(tinyet_gate_exp(x < 0 ? -x : x, integer_bits + 1)) - 8192);
  const int32_t size = tinyet_gate_saturate(y);
  return x < 0 ? -size : size;
}

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
      for (int32_t i = 0; i < 4; i++) {
        const int32_t sum = *sums + tinyet_requantize_form(rows[i], multiplier, form, 0);
        *sums++ = (int16_t)tinyet_gate_saturate(sum);
      }
    }
  }
}

#ifdef __cplusplus
}
#endif

#endif
