/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

static TINYET_NOINLINE void row(const int8_t *a, const int8_t *b, int8_t *output,
                                const tinyet_affine_s8_params *params) {
  const int32_t a_factor = params->a_factor, b_factor = params->b_factor;
  const int32_t offset = params->offset, shift = params->shift;
  const int32_t low = params->clamp_low, high = params->clamp_high;
  TINYET_BROADCAST_ROW(int8_t, int32_t, a, b, output, &params->shape,
                       (int8_t)tinyet_clamp((offset + x * a_factor + y * b_factor) >> shift, low, high));
}

void tinyet_affine_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_affine_s8_params *params) {
  TINYET_BROADCAST(int8_t, a, b, output, params, row);
}
