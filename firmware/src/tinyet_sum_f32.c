/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_reduce.h"

void tinyet_sum_f32(const float *input, float *output, const tinyet_sum_f32_params *params) {
  const tinyet_reduce_shape *const s = &params->shape;
  const int32_t inner = s->inner, rows = s->reduced_inner;
  const int32_t block = rows * inner, plane = s->middle * block;
  for (int32_t o = 0; o < s->outer; o++) {
    for (int32_t m = 0; m < s->middle; m++) {
      for (int32_t c = 0; c < inner; c++) {
        float sum = 0.0f;
        const float *slab = input + m * block + c;
        for (int32_t i = 0; i < s->reduced_outer; i++) {
          const float *x = slab;
          for (int32_t left = rows; left > 0; left--) {
            sum += *x;
            x += inner;
          }
          slab += plane;
        }
        *output++ = sum / params->divisor;
      }
    }
    input += s->reduced_outer * plane;
  }
}
