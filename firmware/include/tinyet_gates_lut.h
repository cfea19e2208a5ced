/* SPDX-License-Identifier: Apache-2.0 */
/* Gates of recurrent layers in int16 by table, as TFLM's LSTM has them. Qm.n is an int16 that stands for itself / 2^n. The
 * reference in Python is tinyet/ops/shared/gates_lut.py. */
#ifndef TINYET_GATES_LUT_H
#define TINYET_GATES_LUT_H

#include "tinyet_dot_1x4.h"
#include "tinyet_dot_1x4_s16.h"
#include "tinyet_recurrent.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The sigmoid of a number that is not negative, with `bits` fraction bits more than the table has; beyond the table `limit`. */
static inline int32_t tinyet_lut_interpolate(const TINYET_ROM uint16_t *table, int32_t size, int32_t bits, int32_t limit) {
  const int32_t index = size >> bits;
  if (index >= 255) {
    return limit;
  }
  const int32_t here = table[index], following = table[index + 1];
  return (here << bits) + (size & ((INT32_C(1) << bits) - 1)) * (following - here);
}

/* Q3.12 to Q0.15. */
static inline int32_t tinyet_lut_sigmoid(const TINYET_ROM uint16_t *table, int32_t x) {
  const int32_t value = tinyet_lut_interpolate(table, 3 * (x < 0 ? -x : x), 9, INT32_C(0x7fff) << 10);
  return (x >= 0 ? value + 512 : (INT32_C(1) << 25) - value + 511) >> 10;
}

/* Of so many integer bits, 0 ... 6, to Q0.15: 2 sigmoid(2 x) - 1. */
static inline int32_t tinyet_lut_tanh(const TINYET_ROM uint16_t *table, int32_t x, int32_t integer_bits) {
  x *= 3;
  if (integer_bits >= 3) {
    x = tinyet_shift_left(x, integer_bits - 3);
  } else {
    x = (x + (INT32_C(1) << (2 - integer_bits))) >> (3 - integer_bits);
  }
  const int32_t value = tinyet_lut_interpolate(table, x < 0 ? -x : x, 8, INT32_C(0xffff) << 8);
  return (x >= 0 ? value - (INT32_C(1) << 23) + 128 : (INT32_C(1) << 23) - value + 127) >> 8;
}

/* Of each value. */
static __attribute__((noinline, unused)) void tinyet_lut_sigmoids(const TINYET_ROM uint16_t *table, int16_t *values,
                                                                  int32_t count) {
  for (; count != 0; count--) {
    *values = (int16_t)tinyet_lut_sigmoid(table, *values);
    values++;
  }
}

static __attribute__((noinline, unused)) void tinyet_lut_tanhs(const TINYET_ROM uint16_t *table, int16_t *values,
                                                               int32_t count, int32_t integer_bits) {
  for (; count != 0; count--) {
    *values = (int16_t)tinyet_lut_tanh(table, *values, integer_bits);
    values++;
  }
}

/* A product within 2^30 over 2^bits, 2 ... 30, as tinyet_requantize rounds it: halved, ties upward, then over the rest,
 * ties away from zero. Shifts are floors, so that one does for both, once 1 is added for the first rounding, 2^(bits - 1) for
 * the second, and 2 is taken away where that has to round down. */
static inline int32_t tinyet_shortened(int32_t product, int32_t bits) {
  return (product + ((product >> 31) | 1) + (INT32_C(1) << (bits - 1))) >> bits;
}

/* Adds to sums, [gates][units], what a row of the part's inputs comes to in Q3.12; it and the sum are saturated, each by
 * itself. units: rounded up to fours. */
static __attribute__((noinline, unused)) void tinyet_lut_sums_s8(const int8_t *input,
                                                                 const tinyet_gate_part_s8 *part, int32_t gates,
                                                                 int32_t units, int16_t *sums) {
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
        const int32_t value = tinyet_requantize_form(rows[i], multiplier, form, 0);
        *sums = (int16_t)tinyet_clamp(*sums + tinyet_clamp(value, INT16_MIN, INT16_MAX), INT16_MIN, INT16_MAX);
        sums++;
      }
    }
  }
}

static __attribute__((noinline, unused)) void tinyet_lut_sums_s16(const int16_t *input,
                                                                  const tinyet_gate_part_s16 *part, int32_t gates,
                                                                  int32_t units, int16_t *sums) {
  const TINYET_ROM int8_t *w = part->weights;
  const TINYET_ROM int64_t *bias = part->bias;
  for (int32_t gate = 0; gate < gates; gate++) {
    const int32_t multiplier = part->multiplier[gate], shift = part->shift[gate];
    for (int32_t n = units; n != 0; n -= 4) {
      int64_t rows[4] = {bias[0], bias[1], bias[2], bias[3]};
      w = tinyet_totals_1x4_s16(input, w, part->depth, part->block, rows);
      bias += 4;
      for (int32_t i = 0; i < 4; i++) {
        const int32_t value = tinyet_requantize_s64(rows[i], multiplier, shift);
        *sums = (int16_t)tinyet_clamp(*sums + tinyet_clamp(value, INT16_MIN, INT16_MAX), INT16_MIN, INT16_MAX);
        sums++;
      }
    }
  }
}

#ifdef __cplusplus
}
#endif

#endif
