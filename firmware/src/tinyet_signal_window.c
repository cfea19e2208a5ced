/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_signal.h"

void tinyet_signal_window(const int16_t *input, int16_t *output, const tinyet_signal_window_params *params) {
  const int32_t shift = params->shift;
  for (int32_t frame = 0; frame < params->frames; frame++) {
    const TINYET_ROM int16_t *window = params->window;
    const int16_t *const end = input + params->count;
    while (input != end) {
      const int32_t product = (int32_t)*input++ * *window++;
      *output++ = (int16_t)tinyet_clamp(product >> shift, INT16_MIN, INT16_MAX);
    }
  }
}
