/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_layer_norm.h"

#include "tinyet_math.h"

void tinyet_layer_norm_f32(const float *input, float *output, const tinyet_layer_norm_f32_params *params) {
  const int32_t count = params->count;
  const float share = 1.0f / (float)count;
  for (int32_t row = params->rows; row > 0; row--) {
    float sum = 0.0f, squares = 0.0f;
    for (int32_t i = 0; i < count; i++) {
      sum += input[i];
    }
    const float mean = sum * share;
    for (int32_t i = 0; i < count; i++) {
      const float x = input[i] - mean;
      squares += x * x;
    }
    const float scale = 1.0f / tinyet_sqrtf(squares * share + params->epsilon);
    for (int32_t i = 0; i < count; i++) {
      output[i] = (input[i] - mean) * scale * params->weight[i] + params->bias[i];
    }
    input += count;
    output += count;
  }
}
