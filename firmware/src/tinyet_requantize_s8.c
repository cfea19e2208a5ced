/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_quantize.h"

void tinyet_requantize_s8(const int8_t *input, int8_t *output, const tinyet_requantize_params *params) {
  const int32_t in_zero_point = params->in_zero_point, out_zero_point = params->out_zero_point;
  const int32_t multiplier = params->multiplier, shift = params->shift;
  const int32_t low = params->clamp_low, high = params->clamp_high;
  const int8_t *const end = output + params->count;
  while (output != end) {
    const int32_t value = tinyet_requantize(*input++ - in_zero_point, multiplier, shift) + out_zero_point;
    *output++ = (int8_t)tinyet_clamp(value, low, high);
  }
}
