/* SPDX-License-Identifier: Apache-2.0 */
/* A fully connected layer that rounds once. The file that includes this has defined
 *
 *   KERNEL   the function's name
 *   ELEMENT  the type of inputs and outputs */
#ifndef TINYET_LINEAR_SINGLE_ROUNDING_BODY_H
#define TINYET_LINEAR_SINGLE_ROUNDING_BODY_H

#include "tinyet_linear_single_rounding.h"

void KERNEL(const ELEMENT *input, ELEMENT *output, const tinyet_linear_single_rounding_params *params) {
  const int32_t depth = params->depth, zero_point = params->out_zero_point;
  for (int32_t row = 0; row < params->rows; row++) {
    const TINYET_ROM int8_t *w = params->weights;
    for (int32_t n = 0; n < params->out_count; n++) {
      int32_t sum = params->bias[n];
      for (int32_t k = 0; k < depth; k++) {
        sum += (int32_t)input[k] * *w++;
      }
      const int32_t value = tinyet_round_single(sum, params->multiplier + 2 * n, params->shift[n]) + zero_point;
      *output++ = (ELEMENT)tinyet_clamp(value, params->clamp_low, params->clamp_high);
    }
    input += depth;
  }
}

#endif
