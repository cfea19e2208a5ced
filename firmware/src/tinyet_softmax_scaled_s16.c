/* SPDX-License-Identifier: Apache-2.0 */
#define KERNEL tinyet_softmax_scaled_s16
#define PARAMS tinyet_softmax_scaled_s16_params
#define softmax_of(params) (&(params)->softmax)

#include "tinyet_softmax.h"

/* The product has the sum's scale, and becomes output steps. */
static inline int32_t probability(int32_t product, int32_t headroom, const PARAMS *params) {
  return tinyet_requantize_s64(product, params->out_multiplier, params->out_shift - headroom);
}

#include "tinyet_softmax_s16_body.h"
