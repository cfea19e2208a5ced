/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"
#include "tinyet_rne.h"

static TINYET_NOINLINE void row(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_rne_params *p) {
  const int32_t a_zero_point = p->a_zero_point, b_zero_point = p->b_zero_point, above = p->above;
  const int32_t low = p->clamp_low, high = p->clamp_high;
  const float factor = p->factor, zero_point = p->out_zero_point;
  TINYET_BROADCAST_ROW(
      int8_t, int32_t, a, b, output, &p->shape,
      (int8_t)tinyet_clamp(
          tinyet_round_half_even((float)((x - a_zero_point) * (y - b_zero_point)) * factor + zero_point) - above, low, high));
}

void tinyet_mul_s8_rne(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_rne_params *params) {
  TINYET_BROADCAST(int8_t, a, b, output, params, row);
}
