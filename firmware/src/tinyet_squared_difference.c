/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

enum { HEADROOM_S8 = 7 };

static inline int32_t square_s8(int32_t x, int32_t y, const tinyet_add_s8_params *p) {
  const int32_t a = tinyet_requantize((x - p->a_zero_point) * (1 << HEADROOM_S8), p->a_multiplier, p->a_shift);
  const int32_t b = tinyet_requantize((y - p->b_zero_point) * (1 << HEADROOM_S8), p->b_multiplier, p->b_shift);
  const int32_t value = tinyet_requantize((a - b) * (a - b), p->out_multiplier, p->out_shift) + p->out_zero_point;
  return tinyet_clamp(value, p->clamp_low, p->clamp_high);
}

static inline int32_t square_s16(int32_t x, int32_t y, const tinyet_add_s16_params *p) {
  const int32_t a = tinyet_requantize(x, p->a_multiplier, p->a_shift);
  const int32_t b = tinyet_requantize(y, p->b_multiplier, p->b_shift);
  const int32_t value = tinyet_requantize((a - b) * (a - b), p->out_multiplier, p->out_shift);
  return tinyet_clamp(value, p->clamp_low, p->clamp_high);
}

static TINYET_NOINLINE void row_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_add_s8_params *p) {
  TINYET_BROADCAST_ROW(int8_t, int32_t, a, b, output, &p->shape, (int8_t)square_s8(x, y, p));
}

static TINYET_NOINLINE void row_s16(const int16_t *a, const int16_t *b, int16_t *output,
                                    const tinyet_add_s16_params *p) {
  TINYET_BROADCAST_ROW(int16_t, int32_t, a, b, output, &p->shape, (int16_t)square_s16(x, y, p));
}

void tinyet_squared_difference_s8(const int8_t *a, const int8_t *b, int8_t *output,
                                  const tinyet_add_s8_params *params) {
  TINYET_BROADCAST(int8_t, a, b, output, params, row_s8);
}

void tinyet_squared_difference_s16(const int16_t *a, const int16_t *b, int16_t *output,
                                   const tinyet_add_s16_params *params) {
  TINYET_BROADCAST(int16_t, a, b, output, params, row_s16);
}
