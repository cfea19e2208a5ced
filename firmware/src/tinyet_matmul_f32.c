/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_matmul.h"

void tinyet_matmul_f32(const float *a, const float *b, float *output, const tinyet_matmul_f32_params *params) {
  const int32_t depth = params->depth, columns = params->columns;
  for (int32_t i = 0; i < params->count; i++) {
    const float *row = a + params->batches[2 * i];
    const float *const matrix = b + params->batches[2 * i + 1];
    for (int32_t m = 0; m < params->rows; m++) {
      for (int32_t n = 0; n < columns; n++) {
        float sum = 0.0f;
        for (int32_t k = 0; k < depth; k++) {
          sum += row[k] * matrix[k * columns + n];
        }
        *output++ = tinyet_clamp_f32(sum, params->clamp_low, params->clamp_high);
      }
      row += depth;
    }
  }
}
