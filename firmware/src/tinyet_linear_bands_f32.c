/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_linear_bands.h"

void tinyet_linear_bands_f32(const float *input, float *output, const tinyet_linear_bands_f32_params *params) {
  for (int32_t row = 0; row < params->rows; row++) {
    const TINYET_ROM float *weight = params->weights;
    const TINYET_ROM int32_t *run = params->runs;
    for (int32_t n = 0; n < params->count; n++, run += 2) {
      const float *value = input + run[0];
      float sum = 0.0f;
      for (int32_t left = run[1]; left != 0; left--) {
        sum += *value++ * *weight++;
      }
      *output++ = sum;
    }
    input += params->columns;
  }
}
