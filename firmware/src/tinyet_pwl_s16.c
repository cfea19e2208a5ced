/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_lut.h"

void tinyet_pwl_s16(const int16_t *input, int16_t *output, const tinyet_pwl_s16_params *params) {
  const tinyet_pwl_segment_s16 above = params->above, below = params->below;
  const int16_t *const end = output + params->count;
  while (output != end) {
    const int32_t x = *input++;
    const int32_t value = x >= 0 ? above.after * tinyet_requantize(above.before * x, above.multiplier, above.shift)
                                 : below.after * tinyet_requantize(below.before * x, below.multiplier, below.shift);
    *output++ = (int16_t)tinyet_clamp(value, INT16_MIN, INT16_MAX);
  }
}
