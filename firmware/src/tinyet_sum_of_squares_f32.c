/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_reduce.h"

/* Pairs, which complex numbers are, have a loop of their own; 0 + a * a is a * a. */
void tinyet_sum_of_squares_f32(const float *input, float *output, const tinyet_sum_of_squares_params *params) {
  const int32_t depth = params->depth;
  if (depth == 2) {
    for (int32_t left = params->rows; left != 0; left--) {
      const float a = input[0], b = input[1];
      *output++ = a * a + b * b;
      input += 2;
    }
    return;
  }
  for (int32_t row = params->rows; row != 0; row--) {
    float sum = 0.0f;
    for (int32_t left = depth; left != 0; left--) {
      const float value = *input++;
      sum += value * value;
    }
    *output++ = sum;
  }
}
