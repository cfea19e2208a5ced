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

/* a * b of two fixed-point numbers of 16 bits, to nearest, ties upward. */
static inline int32_t tinyet_gate_mul(int32_t a, int32_t b) { return (a * b + (INT32_C(1) << 14)) >> 15; }

/* exp(a) for a <= 0 with so many integer bits, 1 ... 7: Q0.15. A polynomial on [-1/4, 0), around -1/8, times a constant for
 * each bit of the remaining multiple of 1/4. */
static inline int32_t tinyet_gate_exp(int32_t a, int32_t integer_bits) {
  static const TINYET_ROM int16_t factors[7] = {25520, 19875, 12055, 4435, 600, 11, 0};
  if (a == 0) {
    return INT16_MAX;
  }
  if (integer_bits > 5 && a < -(INT32_C(32) << (15 - integer_bits))) {
    return 0;
  }
  const int32_t quarter = INT32_C(1) << (13 - integer_bits);
  const int32_t rest = (a & (quarter - 1)) - quarter;
  const int32_t x = tinyet_shift_left(rest, integer_bits) + 4096;
  const int32_t x2 = tinyet_gate_mul(x, x);
  const int32_t series = tinyet_gate_mul(tinyet_round_shift(tinyet_gate_mul(x2, x2), 2) + tinyet_gate_mul(x2, x), 10923);
  const int32_t power = 28918 + tinyet_gate_mul(28918, x + tinyet_round_shift(series + x2, 1));
  int32_t result = power > INT16_MAX ? INT16_MAX : power;
  const TINYET_ROM int16_t *factor = factors;
  for (int32_t multiple = (rest - a) >> (13 - integer_bits); multiple != 0; multiple >>= 1, factor++) {
    if ((multiple & 1) != 0) {
      result = tinyet_gate_mul(result, *factor);
    }
  }
  return result;
}

/* 2 / (1 + x) for x in [0, 1), Q0.15 to Q2.13: three Newton steps. */
static inline int32_t tinyet_gate_reciprocal(int32_t x) {
  const int32_t half_denominator = (x + INT16_MAX + 1) >> 1;
  int32_t y = 23130 + tinyet_gate_mul(half_denominator, -15420);
  for (int32_t i = 0; i < 3; i++) {
    y += 4 * tinyet_gate_mul(y, 8192 - tinyet_gate_mul(half_denominator, y));
  }
  return y;
}

/* Q3.12 to Q0.15. */
static __attribute__((noinline, unused)) int32_t tinyet_gate_sigmoid(int32_t x) {
  const int32_t y = 2 * tinyet_gate_reciprocal(tinyet_gate_exp(x < 0 ? x : -x, 3));
  const int32_t positive = y > INT16_MAX ? INT16_MAX : y;
  return x == 0 ? 16384 : (x > 0 ? positive : INT16_MAX - positive);
}

/* Of so many integer bits, 0 ... 6, to Q0.15. */
static __attribute__((noinline, unused)) int32_t tinyet_gate_tanh(int32_t x, int32_t integer_bits) {
  const int32_t y = 4 * (tinyet_gate_reciprocal(tinyet_gate_exp(x < 0 ? x : -x, integer_bits + 1)) - 8192);
  const int32_t size = y > INT16_MAX ? INT16_MAX : y;
  return x == 0 ? 0 : (x < 0 ? -size : size);
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
        *sums++ = (int16_t)tinyet_clamp(sum, INT16_MIN, INT16_MAX);
      }
    }
  }
}

#ifdef __cplusplus
}
#endif

#endif
