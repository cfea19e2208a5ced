/* SPDX-License-Identifier: Apache-2.0 */
/* The fully connected layer in int8. The file that includes this has defined KERNEL, its name, and REQUANTIZE, the function
 * that makes an output of a sum. */
#ifndef TINYET_LINEAR_S8_BODY_H
#define TINYET_LINEAR_S8_BODY_H

#include "tinyet_dot_1x4.h"
#include "tinyet_form.h"
#include "tinyet_linear.h"

void KERNEL(const int8_t *input, int8_t *output, const tinyet_linear_s8_params *params) {
  const int32_t depth = params->depth, count = params->out_count, blocks = depth / 4, rest = depth & 3;
  const int32_t zero_point = params->out_zero_point, low = params->clamp_low, high = params->clamp_high;
  for (int32_t row = 0; row < params->rows; row++) {
    const TINYET_ROM int8_t *w = params->weights;
    for (int32_t n = 0; n < count; n += 4) {
      const TINYET_ROM int32_t *const bias = params->bias + n;
      int32_t sums[4] = {bias[0], bias[1], bias[2], bias[3]};
      w = tinyet_dot_1x4(input, w, blocks, rest, sums);
      w += rest != 0 ? 16 - rest : 0;
      const int32_t end = count - n < 4 ? count - n : 4;
      for (int32_t i = 0; i < end; i++) {
        const int32_t multiplier = params->multiplier[n + i], form = TINYET_FORM(params->shift, n + i);
        const int32_t value = REQUANTIZE(sums[i], multiplier, form, zero_point);
        *output++ = (int8_t)tinyet_clamp(value, low, high);
      }
    }
    input += depth;
  }
}

#endif
