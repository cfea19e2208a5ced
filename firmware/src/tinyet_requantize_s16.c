/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_quantize.h"

#define DEFINE(NAME, FROM, TO)                                                                               \
  void tinyet_requantize_##NAME(const FROM *input, TO *output, const tinyet_requantize_params *params) {     \
    const int32_t in_zero_point = params->in_zero_point, out_zero_point = params->out_zero_point;            \
    const int32_t multiplier = params->multiplier, shift = params->shift;                                    \
    const int32_t low = params->clamp_low, high = params->clamp_high;                                        \
    const TO *const end = output + params->count;                                                            \
    while (output != end) {                                                                                  \
      const int32_t value = tinyet_requantize(*input++ - in_zero_point, multiplier, shift) + out_zero_point; \
      *output++ = (TO)tinyet_clamp(value, low, high);                                                        \
    }                                                                                                        \
  }

DEFINE(s16, int16_t, int16_t)
DEFINE(s8_s16, int8_t, int16_t)
DEFINE(s16_s8, int16_t, int8_t)
