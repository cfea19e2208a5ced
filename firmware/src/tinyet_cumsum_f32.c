/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_cumsum.h"

void tinyet_cumsum_f32(const float *input, float *output, const tinyet_cumsum_shape *shape) {
  const int32_t inner = shape->inner, block = shape->depth * inner;
  for (int32_t o = 0; o < shape->outer; o++) {
    for (int32_t c = 0; c < inner; c++) {
      float sum = 0.0f;
      for (int32_t at = c; at < block; at += inner) {
        sum += input[at];
        output[at] = sum;
      }
    }
    input += block;
    output += block;
  }
}
