/* SPDX-License-Identifier: Apache-2.0 */
/* Fully connected layer: rows of `depth` values times a matrix of weights. */
#ifndef TINYET_LINEAR_H
#define TINYET_LINEAR_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t rows, depth, out_count;
  const int8_t
      *weights; /* [out_count / 4][depth / 4][4][4], rounded up with zeros: four inputs of each of four outputs */
  const int32_t *bias; /* minus the input's zero point times the sum of the output's weights; rounded up to fours */
  const int32_t *multiplier; /* [out_count] */
  const int8_t *shift;       /* [out_count], forms as tinyet_requantize_form has them */
  int32_t out_zero_point;
  int32_t clamp_low, clamp_high;
} tinyet_linear_s8_params;

typedef struct {
  int32_t rows, depth, out_count;
  const float *weights; /* [out_count][depth] */
  const float *bias;    /* [out_count] */
  float clamp_low, clamp_high;
} tinyet_linear_f32_params;

void tinyet_linear_s8(const int8_t *input, int8_t *output, const tinyet_linear_s8_params *params);

/* Sums in the order bias, then k = 0 ... depth - 1. */
void tinyet_linear_f32(const float *input, float *output, const tinyet_linear_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
