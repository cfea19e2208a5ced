/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_clip.h"

void tinyet_clip_s8(const int8_t *input, int8_t *output, const tinyet_clip_params *params) {
  const int32_t low = params->low, high = params->high;
  const int8_t *const end = output + params->count;
  while (output != end) {
    *output++ = (int8_t)tinyet_clamp(*input++, low, high);
  }
}
