/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_batch_norm.h"

void tinyet_batch_norm_s16(const int16_t *input, int16_t *output, const tinyet_batch_norm_s16_params *params) {
  const tinyet_batch_norm_s16_params *const p = params;
  const int32_t low = p->clamp_low, high = p->clamp_high;
  for (int32_t n = p->outer; n != 0; n--) {
    for (int32_t c = 0; c < p->channels; c++) {
      const int32_t weight = p->weights[c], multiplier = p->multiplier[c], shift = p->shift[c];
      const int64_t bias = p->bias[c];
      for (int32_t i = p->inner; i != 0; i--) {
        const int64_t sum = *input++ * weight + bias;
        *output++ = (int16_t)tinyet_clamp(tinyet_requantize_s64(sum, multiplier, shift), low, high);
      }
    }
  }
}
