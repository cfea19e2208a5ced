/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_quantize.h"
#include "tinyet_rne.h"

void tinyet_quantize_f32_s8_rne(const float *input, int8_t *output, const tinyet_quantize_rne_params *params) {
  const float scale = params->scale, before = params->before;
  const int32_t after = params->after;
  const int8_t *const end = output + params->count;
  while (output != end) {
    const float x = *input++ / scale;
    const float steps = x == x ? x : 0.0f;
    *output++ = (int8_t)tinyet_clamp(tinyet_round_half_even(steps + before) + after, INT8_MIN, INT8_MAX);
  }
}
