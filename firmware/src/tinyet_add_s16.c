/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

static inline int32_t rescaled(int32_t value, int32_t multiplier, int32_t shift) {
  return tinyet_requantize(tinyet_shift_left(value, 15), multiplier, shift);
}

/* Both operators; sign is 1 or -1. The parameters are copied because a store through int16_t * might change *params. */
static inline void add_or_sub(const int16_t *a, const int16_t *b, int16_t *output, const tinyet_add_s16_params *params,
                              int32_t sign) {
  const tinyet_add_s16_params p = *params;
  TINYET_BROADCAST_ROW(int16_t, int32_t, a, b, output, &params->shape,
                       tinyet_clamp(tinyet_requantize(rescaled(x, p.a_multiplier, p.a_shift) +
                                                          sign * rescaled(y, p.b_multiplier, p.b_shift),
                                                      p.out_multiplier, p.out_shift),
                                    p.clamp_low, p.clamp_high));
}

static TINYET_NOINLINE void add_row(const int16_t *a, const int16_t *b, int16_t *output,
                                    const tinyet_add_s16_params *params) {
  add_or_sub(a, b, output, params, 1);
}

static TINYET_NOINLINE void sub_row(const int16_t *a, const int16_t *b, int16_t *output,
                                    const tinyet_add_s16_params *params) {
  add_or_sub(a, b, output, params, -1);
}

void tinyet_add_s16(const int16_t *a, const int16_t *b, int16_t *output, const tinyet_add_s16_params *params) {
  TINYET_BROADCAST(int16_t, a, b, output, params, add_row);
}

void tinyet_sub_s16(const int16_t *a, const int16_t *b, int16_t *output, const tinyet_add_s16_params *params) {
  TINYET_BROADCAST(int16_t, a, b, output, params, sub_row);
}
