/* SPDX-License-Identifier: Apache-2.0 */
/* Fully connected layer with a single rounding: sums are multiplied exactly, and rounded once.
 * tinyet/ops/linear_single_rounding.py is the definition. */
#ifndef TINYET_LINEAR_SINGLE_ROUNDING_H
#define TINYET_LINEAR_SINGLE_ROUNDING_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t rows, depth, out_count;
  const TINYET_ROM int8_t *weights;      /* [out_count][depth] */
  const TINYET_ROM int32_t *bias;        /* [out_count], less the input's zero point times the sum of the weights */
  const TINYET_ROM uint32_t *multiplier; /* [out_count][2], the high word, below 2**31, and the low one */
  const TINYET_ROM int8_t *shift;        /* [out_count], 1 ... 62: behind the product's lowest 32 bits */
  int32_t out_zero_point;
  int32_t clamp_low, clamp_high;
} tinyet_linear_single_rounding_params;

/* sum * multiplier / 2**(shift + 32), to nearest, ties away from zero; within 2**20. |sum| < 2**31. */
static inline int32_t tinyet_round_single(int32_t sum, const TINYET_ROM uint32_t *multiplier, int32_t shift) {
  const uint32_t size = (uint32_t)(sum < 0 ? -sum : sum);
  const uint64_t product = (uint64_t)size * multiplier[0] + ((uint64_t)size * multiplier[1] >> 32);
  const uint64_t rounded = (product + (UINT64_C(1) << (shift - 1))) >> shift;
  const int32_t value = rounded < (UINT32_C(1) << 20) ? (int32_t)rounded : INT32_C(1) << 20;
  return sum < 0 ? -value : value;
}

void tinyet_linear_s8_single_rounding(const int8_t *input, int8_t *output, const tinyet_linear_single_rounding_params *params);

void tinyet_linear_s16_single_rounding(const int16_t *input, int16_t *output, const tinyet_linear_single_rounding_params *params);

#ifdef __cplusplus
}
#endif

#endif
