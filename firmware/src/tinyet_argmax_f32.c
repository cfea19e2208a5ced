/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_argmax.h"

void tinyet_argmax_f32(const float *input, int32_t *output, const tinyet_argmax_params *params) {
  const int32_t inner = params->inner;
  /* value != value: a NaN, which the first time beats every number. */
  for (int32_t o = 0; o < params->outer; o++) {
    for (int32_t c = 0; c < inner; c++) {
      const float *x = input + c;
      float best = *x;
      int32_t found = 0;
      for (int32_t i = 1; i < params->count; i++) {
        x += inner;
        const float value = *x;
        if (value > best || (value != value && best == best)) {
          best = value;
          found = i;
        }
      }
      *output++ = found;
    }
    input += params->count * inner;
  }
}
