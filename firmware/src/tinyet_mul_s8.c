/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

/* The first rounding: the high word of twice the product by the multiplier, ties upward. */
static inline int32_t high_word(int32_t doubled, int32_t multiplier) {
  return (int32_t)(((int64_t)doubled * multiplier + INT64_C(0x80000000)) >> 32);
}

/* The second one, ties away from zero; the output's zero point is in the offset. */
static inline int32_t away(int32_t x, int32_t offset, int32_t shift) { return (x + (x >> 31) + offset) >> shift; }

static TINYET_NOINLINE void right_row(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_params *p) {
  const int32_t a_zero_point = p->a_zero_point, b_zero_point = p->b_zero_point, multiplier = p->multiplier;
  const int32_t shift = p->shift, offset = p->offset, low = p->clamp_low, high = p->clamp_high;
  TINYET_BROADCAST_ROW(
      int8_t, int32_t, a, b, output, &p->shape,
      (int8_t)tinyet_clamp(away(high_word((x - a_zero_point) * (y - b_zero_point) * 2, multiplier), offset, shift), low,
                           high));
}

static TINYET_NOINLINE void left_row(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_params *p) {
  const int32_t a_zero_point = p->a_zero_point, b_zero_point = p->b_zero_point, multiplier = p->multiplier;
  const int32_t shift = p->shift, offset = p->offset, low = p->clamp_low, high = p->clamp_high;
  TINYET_BROADCAST_ROW(
      int8_t, int32_t, a, b, output, &p->shape,
      (int8_t)tinyet_clamp(
          high_word(tinyet_shift_left((x - a_zero_point) * (y - b_zero_point), shift), multiplier) + offset, low, high));
}

void tinyet_mul_right_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_params *params) {
  TINYET_BROADCAST(int8_t, a, b, output, params, right_row);
}

void tinyet_mul_left_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_params *params) {
  TINYET_BROADCAST(int8_t, a, b, output, params, left_row);
}
