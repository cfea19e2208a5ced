/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_even.h"
#include "tinyet_quantize.h"

void tinyet_quantize_even_f32_s8(const float *input, int8_t *output, const tinyet_quantize_even_params *params) {
  const float scale = params->scale, before = params->before;
  const int32_t after = params->after;
  const int8_t *const end = output + params->count;
  while (output != end) {
    const float x = *input++ / scale;
    const float steps = x == x ? x : 0.0f;
    *output++ = (int8_t)tinyet_clamp(tinyet_nearest_even(steps + before) + after, INT8_MIN, INT8_MAX);
  }
}
