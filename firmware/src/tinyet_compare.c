/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_compare.h"

#define DEFINE(NAME, ELEMENT, RELATION)                                                                               \
  void tinyet_##NAME(const ELEMENT *a, const ELEMENT *b, int32_t *output, const tinyet_compare_params *params) {      \
    const ptrdiff_t a_step = (ptrdiff_t)params->a_step, b_step = (ptrdiff_t)params->b_step;                           \
    const int32_t *const end = output + params->count;                                                                \
    while (output != end) {                                                                                           \
      *output++ = *a RELATION *b ? 1 : 0;                                                                             \
      a += a_step;                                                                                                    \
      b += b_step;                                                                                                    \
    }                                                                                                                 \
  }

DEFINE(equal_f32, float, ==)
DEFINE(not_equal_f32, float, !=)
DEFINE(greater_f32, float, >)
DEFINE(greater_equal_f32, float, >=)
DEFINE(equal_s32, int32_t, ==)
DEFINE(not_equal_s32, int32_t, !=)
DEFINE(greater_s32, int32_t, >)
DEFINE(greater_equal_s32, int32_t, >=)
