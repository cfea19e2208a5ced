/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

#define DEFINE(NAME, RESULT)                                                                                        \
  static TINYET_NOINLINE void NAME##_row(const float *a, const float *b, float *output,                             \
                                         const tinyet_binary_f32_params *params) {                                  \
    const float low = params->clamp_low, high = params->clamp_high;                                                 \
    TINYET_BROADCAST_ROW(float, float, a, b, output, &params->shape, tinyet_clamp_f32(RESULT, low, high));          \
  }                                                                                                                 \
  void tinyet_##NAME##_f32(const float *a, const float *b, float *output, const tinyet_binary_f32_params *params) { \
    TINYET_BROADCAST(float, a, b, output, params, NAME##_row);                                                      \
  }

DEFINE(add, x + y)
DEFINE(sub, x - y)
DEFINE(mul, x *y)
DEFINE(div, x / y)
