/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

static inline int32_t sloped(int32_t x, int32_t slope, const tinyet_prelu_s8_params *p) {
  return x >= 0 ? tinyet_requantize(x, p->positive_multiplier, p->positive_shift)
                : tinyet_requantize(x * slope, p->negative_multiplier, p->negative_shift);
}

static TINYET_NOINLINE void row(const int8_t *a, const int8_t *b, int8_t *output,
                                const tinyet_prelu_s8_params *params) {
  const tinyet_prelu_s8_params p = *params; /* a copy, because a store through int8_t * might change *params */
  TINYET_BROADCAST_ROW(
      int8_t, int32_t, a, b, output, &params->shape,
      tinyet_clamp(sloped(x - p.x_zero_point, y - p.slope_zero_point, &p) + p.out_zero_point, INT8_MIN, INT8_MAX));
}

void tinyet_prelu_s8(const int8_t *x, const int8_t *slope, int8_t *output, const tinyet_prelu_s8_params *params) {
  TINYET_BROADCAST(int8_t, x, slope, output, params, row);
}
