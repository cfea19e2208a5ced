/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_quantize.h"

/* AS: the cast from int32_t, where there is one. */
#define DEFINE(NAME, FROM, TO, AS)                                                                           \
  void tinyet_requantize_##NAME(const FROM *input, TO *output, const tinyet_requantize_params *params) {     \
    const int32_t in_zero_point = params->in_zero_point, out_zero_point = params->out_zero_point;            \
    const int32_t multiplier = params->multiplier, shift = params->shift;                                    \
    const int32_t low = params->clamp_low, high = params->clamp_high;                                        \
    const TO *const end = output + params->count;                                                            \
    while (output != end) {                                                                                  \
      const int32_t scaled = tinyet_requantize(*input++ - in_zero_point, multiplier, shift);                 \
      const int32_t near = tinyet_clamp(scaled, -(INT32_C(1) << 30), INT32_C(1) << 30);                      \
      *output++ = AS tinyet_clamp(near + out_zero_point, low, high);                                         \
    }                                                                                                        \
  }

DEFINE(s32_s8, int32_t, int8_t, (int8_t))
DEFINE(s32_s16, int32_t, int16_t, (int16_t))
DEFINE(s8_s32, int8_t, int32_t, )
DEFINE(s16_s32, int16_t, int32_t, )
