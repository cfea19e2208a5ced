/* SPDX-License-Identifier: Apache-2.0 */
#define KERNEL tinyet_softmax_s16
#define PARAMS tinyet_softmax_s16_params
#define softmax_of(params) (params)

#include "tinyet_softmax.h"

/* The product has the sum's scale, and becomes Q0.15. */
static inline int32_t probability(int32_t product, int32_t headroom, const PARAMS *params) {
  (void)params;
  const int32_t shift = 31 - headroom;
  return (product + (INT32_C(1) << (shift - 1))) >> shift;
}

#include "tinyet_softmax_s16_body.h"
