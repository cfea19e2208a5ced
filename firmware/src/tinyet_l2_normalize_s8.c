/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_l2_normalize.h"

/* x * 2^bits, saturated. */
static int32_t saturated_left(int32_t x, int32_t bits) {
  const int32_t limit = INT32_MAX >> bits;
  return x > limit ? INT32_MAX : (x < -limit - 1 ? INT32_MIN : tinyet_shift_left(x, bits));
}

/* 1 / sqrt(x) for x >= 0 as a multiplier and a shift, by Newton's method from 1 in Q3.28; of 0 as of 1. */
static int32_t inverse_root(int32_t x, int32_t *shift) {
  *shift = 0;
  if (x <= 1) {
    return INT32_MAX;
  }
  int32_t right = 11;
  while (x >= INT32_C(1) << 29) {
    x /= 4;
    right++;
  }
  const int32_t pairs = (tinyet_leading_zeros((uint32_t)x) - 1) / 2 - 1;
  right -= pairs;
  x = tinyet_shift_left(x, 2 * pairs);
  /* A product of three has nine integer bits, a product of four likewise. */
  const int32_t half = tinyet_round_shift(x >> 1, 1);
  int32_t y = INT32_C(1) << 28;
  for (int32_t i = 0; i < 5; i++) {
    const int32_t cube = saturated_left(tinyet_high_mul(tinyet_high_mul(y, y), y), 6);
    const int32_t first = tinyet_high_mul((INT32_C(1) << 28) + (INT32_C(1) << 27), y);
    y = saturated_left(first - tinyet_high_mul(half, cube), 3);
  }
  y = tinyet_high_mul(y, INT32_C(1518500250));
  if (right < 0) {
    return tinyet_shift_left(y, -right);
  }
  *shift = -right;
  return y;
}

void tinyet_l2_normalize_s8(const int8_t *input, int8_t *output, const tinyet_l2_normalize_s8_params *params) {
  const int32_t depth = params->depth, zero_point = params->in_zero_point;
  for (int32_t row = 0; row < params->rows; row++) {
    int32_t sum = 0;
    for (int32_t i = 0; i < depth; i++) {
      const int32_t x = input[i] - zero_point;
      sum += x * x;
    }
    int32_t shift;
    const int32_t multiplier = inverse_root(sum, &shift);
    for (int32_t i = 0; i < depth; i++) {
      const int32_t value = tinyet_requantize(input[i] - zero_point, multiplier, shift + 7);
      output[i] = (int8_t)tinyet_clamp(value, INT8_MIN, INT8_MAX);
    }
    input += depth;
    output += depth;
  }
}
