/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_clip.h"

void tinyet_clip_s16(const int16_t *input, int16_t *output, const tinyet_clip_params *params) {
  const int32_t low = params->low, high = params->high;
  const int16_t *const end = output + params->count;
  while (output != end) {
    *output++ = (int16_t)tinyet_clamp(*input++, low, high);
  }
}
