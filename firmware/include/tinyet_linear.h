/* SPDX-License-Identifier: Apache-2.0 */
/* Fully connected layer: rows of `depth` values times weights [out_count][depth]. */
#ifndef TINYET_LINEAR_H
#define TINYET_LINEAR_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t rows, depth, out_count;
  const int8_t *weights;
  const int32_t *bias;       /* [out_count], minus the input's zero point times the sum of the output's weights */
  const int32_t *multiplier; /* [out_count] */
  const int8_t *shift;       /* [out_count] */
  int32_t out_zero_point;
  int32_t clamp_low, clamp_high;
} tinyet_linear_s8_params;

typedef struct {
  int32_t rows, depth, out_count;
  const float *weights;
  const float *bias; /* [out_count] */
  float clamp_low, clamp_high;
} tinyet_linear_f32_params;

void tinyet_linear_s8(const int8_t *input, int8_t *output, const tinyet_linear_s8_params *params);

/* Sums in the order bias, then k = 0 ... depth - 1. */
void tinyet_linear_f32(const float *input, float *output, const tinyet_linear_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
