/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_quantize.h"

void tinyet_quantize_f32_s16(const float *input, int16_t *output, const tinyet_quantize_params *params) {
  const float scale = params->scale;
  const int32_t zero_point = params->zero_point;
  const int16_t *const end = output + params->count;
  while (output != end) {
    *output++ = (int16_t)tinyet_quantize_value(*input++, scale, zero_point, INT16_MIN, INT16_MAX);
  }
}
