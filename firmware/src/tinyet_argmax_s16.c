/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_argmax.h"

void tinyet_argmax_s16(const int16_t *input, int32_t *output, const tinyet_argmax_params *params) {
  const int32_t inner = params->inner;
  for (int32_t o = 0; o < params->outer; o++) {
    for (int32_t c = 0; c < inner; c++) {
      const int16_t *x = input + c;
      int16_t best = *x;
      int32_t found = 0;
      for (int32_t i = 1; i < params->count; i++) {
        x += inner;
        const int16_t value = *x;
        if (value > best) {
          best = value;
          found = i;
        }
      }
      *output++ = found;
    }
    input += params->count * inner;
  }
}
