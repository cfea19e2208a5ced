/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

/* tinyet_requantize with everything that depends on the shift alone taken out of the loop: the high word of twice the product
 * is the first rounding; the second one rounds halves away from zero. */
static inline int32_t rescaled(int32_t product, const tinyet_mul_s8_params *p) {
  const int64_t wide = (int64_t)tinyet_shift_left(product, p->left) * p->multiplier + INT64_C(0x80000000);
  const int32_t high = (int32_t)(wide >> 32);
  return (high + ((high >> 31) & p->sign) + p->half) >> p->right;
}

static TINYET_NOINLINE void row(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_params *params) {
  const tinyet_mul_s8_params p = *params; /* a copy, because a store through int8_t * might change *params */
  TINYET_BROADCAST_ROW(int8_t, int32_t, a, b, output, &params->shape,
                       tinyet_clamp(rescaled((x - p.a_zero_point) * (y - p.b_zero_point), &p) + p.out_zero_point,
                                    p.clamp_low, p.clamp_high));
}

void tinyet_mul_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_params *params) {
  TINYET_BROADCAST(int8_t, a, b, output, params, row);
}
