/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_cumsum.h"

void tinyet_cumsum_s8(const int8_t *input, int8_t *output, const tinyet_cumsum_s8_params *params) {
  const tinyet_cumsum_shape *const s = &params->shape;
  const int32_t inner = s->inner, block = s->depth * inner;
  for (int32_t o = 0; o < s->outer; o++) {
    for (int32_t c = 0; c < inner; c++) {
      int32_t sum = 0;
      for (int32_t at = c; at < block; at += inner) {
        sum += input[at] - params->in_zero_point;
        const int32_t value = tinyet_requantize(sum, params->multiplier, params->shift);
        output[at] = (int8_t)tinyet_clamp(value + params->out_zero_point, INT8_MIN, INT8_MAX);
      }
    }
    input += block;
    output += block;
  }
}
