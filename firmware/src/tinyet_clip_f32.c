/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_clip.h"

void tinyet_clip_f32(const float *input, float *output, const tinyet_clip_f32_params *params) {
  const float low = params->low, high = params->high;
  const float *const end = output + params->count;
  while (output != end) {
    *output++ = tinyet_clamp_f32(*input++, low, high);
  }
}
