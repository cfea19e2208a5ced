/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

#define DEFINE(NAME, ELEMENT, VALUE, RESULT)                                                                  \
  static TINYET_NOINLINE void NAME##_row(const ELEMENT *a, const ELEMENT *b, ELEMENT *output,                 \
                                         const tinyet_binary_params *params) {                                  \
    TINYET_BROADCAST_ROW(ELEMENT, VALUE, a, b, output, &params->shape, RESULT);                               \
  }                                                                                                           \
  void tinyet_##NAME(const ELEMENT *a, const ELEMENT *b, ELEMENT *output, const tinyet_binary_params *params) { \
    TINYET_BROADCAST(ELEMENT, a, b, output, params, NAME##_row);                                              \
  }

DEFINE(minimum_s8, int8_t, int32_t, (int8_t)(x < y ? x : y))
DEFINE(maximum_s8, int8_t, int32_t, (int8_t)(x > y ? x : y))
DEFINE(minimum_s16, int16_t, int32_t, (int16_t)(x < y ? x : y))
DEFINE(maximum_s16, int16_t, int32_t, (int16_t)(x > y ? x : y))
DEFINE(minimum_f32, float, float, x < y || x != x ? x : y)
DEFINE(maximum_f32, float, float, x > y || x != x ? x : y)
