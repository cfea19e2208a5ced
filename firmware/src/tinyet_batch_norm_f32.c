/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_batch_norm.h"

void tinyet_batch_norm_f32(const float *input, const float *multiplier, const float *offset, float *output,
                           const tinyet_batch_norm_f32_params *params) {
  const float low = params->clamp_low, high = params->clamp_high;
  for (int32_t n = params->outer; n != 0; n--) {
    for (int32_t c = 0; c < params->channels; c++) {
      const float factor = multiplier[c], constant = offset[c];
      for (int32_t i = params->inner; i != 0; i--) {
        *output++ = tinyet_clamp_f32(*input++ * factor + constant, low, high);
      }
    }
  }
}
