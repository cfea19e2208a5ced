/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_batch_norm.h"

void tinyet_batch_norm_s8(const int8_t *input, int8_t *output, const tinyet_batch_norm_s8_params *params) {
  const tinyet_batch_norm_s8_params *const p = params;
  const int32_t zero_point = p->out_zero_point, low = p->clamp_low, high = p->clamp_high;
  for (int32_t n = p->outer; n != 0; n--) {
    for (int32_t c = 0; c < p->channels; c++) {
      const int32_t weight = p->weights[c], bias = p->bias[c];
      const int32_t multiplier = p->multiplier[c], shift = p->shift[c];
      for (int32_t i = p->inner; i != 0; i--) {
        const int32_t sum = *input++ * weight + bias;
        *output++ = (int8_t)tinyet_clamp(tinyet_requantize(sum, multiplier, shift) + zero_point, low, high);
      }
    }
  }
}
