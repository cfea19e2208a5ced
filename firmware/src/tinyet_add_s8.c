/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

static inline int32_t rescaled(int32_t value, int32_t multiplier, int32_t shift) {
  return tinyet_requantize(tinyet_shift_left(value, 20), multiplier, shift);
}

/* Both operators; sign is 1 or -1. The parameters are copied because a store through int8_t * might change *params. */
static inline void add_or_sub(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_add_s8_params *params,
                              int32_t sign) {
  const tinyet_add_s8_params p = *params;
  TINYET_BROADCAST_ROW(
      int8_t, int32_t, a, b, output, &params->shape,
      tinyet_clamp(tinyet_requantize(rescaled(x - p.a_zero_point, p.a_multiplier, p.a_shift) +
                                         sign * rescaled(y - p.b_zero_point, p.b_multiplier, p.b_shift),
                                     p.out_multiplier, p.out_shift) +
                       p.out_zero_point,
                   p.clamp_low, p.clamp_high));
}

static TINYET_NOINLINE void add_row(const int8_t *a, const int8_t *b, int8_t *output,
                                    const tinyet_add_s8_params *params) {
  add_or_sub(a, b, output, params, 1);
}

static TINYET_NOINLINE void sub_row(const int8_t *a, const int8_t *b, int8_t *output,
                                    const tinyet_add_s8_params *params) {
  add_or_sub(a, b, output, params, -1);
}

void tinyet_add_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_add_s8_params *params) {
  TINYET_BROADCAST(int8_t, a, b, output, params, add_row);
}

void tinyet_sub_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_add_s8_params *params) {
  TINYET_BROADCAST(int8_t, a, b, output, params, sub_row);
}
