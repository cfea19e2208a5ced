/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution in int8. The file that includes this has defined KERNEL, its name, and REQUANTIZE, the function that
 * makes an output of a sum. */
#ifndef TINYET_DEPTHWISE_S8_BODY_H
#define TINYET_DEPTHWISE_S8_BODY_H

#include "tinyet_depthwise.h"
#include "tinyet_form.h"

/* Four channels of one output pixel at a time stay in registers while the taps are walked. */

static inline void pixel(const int8_t *corner, void *outputs, int32_t at, const int32_t *offsets, int32_t taps,
                         int32_t channels, const int8_t *outside, const void *layer) {
  const tinyet_conv2d_s8_quant *const q = (const tinyet_conv2d_s8_quant *)layer;
  int8_t *const output = (int8_t *)outputs + at;
  /* Copies: a store of an output could change *q, as far as the compiler knows. */
  const int32_t zero_point = q->out_zero_point, low = q->clamp_low, high = q->clamp_high;
  const TINYET_ROM int32_t *const bias = q->bias, *const multiplier = q->multiplier;
  const TINYET_ROM int8_t *const form = q->shift;
  const TINYET_ROM int8_t *w = q->weights;
  const int32_t *const end = offsets + taps;
  int32_t c = 0;
#define FINISH(sum, i) \
  output[i] = (int8_t)tinyet_clamp(REQUANTIZE(sum, multiplier[i], TINYET_FORM(form, i), zero_point), low, high)
  for (; c + 4 <= channels; c += 4) {
    tinyet_sums4 s = {{bias[c], bias[c + 1], bias[c + 2], bias[c + 3]}};
    const int32_t *offset = offsets;
    if (outside != NULL) {
      for (; offset != end; offset++) {
        tinyet_add_tap(&s, *offset == TINYET_OUTSIDE ? outside : corner + *offset, w);
        w += 4;
      }
    } else {
      for (; end - offset >= 3; offset += 3) {
        tinyet_add_tap(&s, corner + offset[0], w);
        tinyet_add_tap(&s, corner + offset[1], w + 4);
        tinyet_add_tap(&s, corner + offset[2], w + 8);
        w += 12;
      }
      for (; offset != end; offset++) {
        tinyet_add_tap(&s, corner + *offset, w);
        w += 4;
      }
    }
    corner += 4;
    FINISH(s.sum[0], c);
    FINISH(s.sum[1], c + 1);
    FINISH(s.sum[2], c + 2);
    FINISH(s.sum[3], c + 3);
  }
  for (int32_t lane = 0; c < channels; c++, lane++) {
    int32_t sum = bias[c];
    const TINYET_ROM int8_t *lane_w = w + lane;
    for (const int32_t *offset = offsets; offset != end; offset++) {
      sum += (*offset == TINYET_OUTSIDE ? *outside : corner[*offset + lane]) * *lane_w;
      lane_w += 4;
    }
    FINISH(sum, c);
  }
#undef FINISH
}

void KERNEL(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params) {
  const tinyet_conv2d_s8_quant *const q = &params->quant;
  tinyet_depthwise_walk(input, output, scratch, &params->shape, (int8_t)q->in_zero_point, q, pixel);
}

#endif
