/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

static inline int32_t sloped(int32_t x, int32_t slope, const tinyet_prelu_s16_params *p) {
  return x >= 0 ? tinyet_requantize(x, p->positive_multiplier, p->positive_shift)
                : tinyet_requantize(x * slope, p->negative_multiplier, p->negative_shift);
}

static TINYET_NOINLINE void row(const int16_t *a, const int16_t *b, int16_t *output,
                                const tinyet_prelu_s16_params *params) {
  const tinyet_prelu_s16_params p = *params; /* a copy, because a store through int16_t * might change *params */
  TINYET_BROADCAST_ROW(int16_t, int32_t, a, b, output, &params->shape,
                       tinyet_clamp(sloped(x, y, &p), INT16_MIN, INT16_MAX));
}

void tinyet_prelu_s16(const int16_t *x, const int16_t *slope, int16_t *output, const tinyet_prelu_s16_params *params) {
  TINYET_BROADCAST(int16_t, x, slope, output, params, row);
}
