/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

/* x, y: the operands less their zero points; inverse: 1 / |y| in Q0.31, without its power of two. */
static inline int32_t quotient(int32_t x, int32_t y, int32_t inverse, const tinyet_div_s8_params *p) {
  if (y == 0) {
    return x == 0 ? p->out_zero_point : (x > 0 ? p->clamp_high : p->clamp_low);
  }
  if (y < 0) {
    x = -x;
    y = -y;
  }
  if (x == 0) {
    return p->out_zero_point;
  }
  const int32_t room = x > 0 ? tinyet_leading_zeros((uint32_t)x) - 1 : tinyet_leading_zeros((uint32_t)(-2 * x - 1));
  const int32_t value = tinyet_high_mul(tinyet_high_mul(tinyet_shift_left(x, room), inverse), p->multiplier);
  const int32_t right = 31 - tinyet_leading_zeros((uint32_t)y) + room - p->shift;
  return (right > 31 ? 0 : tinyet_round_shift(value, right)) + p->out_zero_point;
}

static TINYET_NOINLINE void row(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_div_s8_params *params) {
  const tinyet_div_s8_params p = *params; /* a copy, because a store through int8_t * might change *params */
  TINYET_BROADCAST_ROW(int8_t, int32_t, a, b, output, &params->shape,
                       (int8_t)tinyet_clamp(
                           quotient(x - p.a_zero_point, y - p.b_zero_point, p.reciprocals[(uint8_t)y], &p), p.clamp_low,
                           p.clamp_high));
}

void tinyet_div_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_div_s8_params *params) {
  TINYET_BROADCAST(int8_t, a, b, output, params, row);
}
