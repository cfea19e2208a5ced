/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_quantize.h"

void tinyet_dequantize_s16_f32(const int16_t *input, float *output, const tinyet_quantize_params *params) {
  const float scale = params->scale;
  const int32_t zero_point = params->zero_point;
  const int16_t *const end = input + params->count;
  while (input != end) {
    *output++ = scale * (float)(*input++ - zero_point);
  }
}
