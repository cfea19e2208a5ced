/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

static TINYET_NOINLINE void row(const int16_t *a, const int16_t *b, int16_t *output, const tinyet_mul_s16_params *p) {
  const int32_t multiplier = p->multiplier, shift = p->shift, low = p->clamp_low, high = p->clamp_high;
  TINYET_BROADCAST_ROW(int16_t, int32_t, a, b, output, &p->shape,
                       (int16_t)tinyet_clamp(tinyet_round_shift(tinyet_high_mul(x * y, multiplier), shift), low, high));
}

void tinyet_mul_s16(const int16_t *a, const int16_t *b, int16_t *output, const tinyet_mul_s16_params *params) {
  TINYET_BROADCAST(int16_t, a, b, output, params, row);
}
