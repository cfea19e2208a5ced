/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolution of integers of any type. The file that includes this has defined
 *
 *   KERNEL          the function's name
 *   element         the type of the elements
 *   kernel_params   its parameters
 *   pixel(input, output, taps, count, depth, filter, first, end, quant)
 *                   channels first ... end - 1 of one output pixel, from `depth` channels of each tap; filter: weights of a
 *                   channel */
#ifndef TINYET_CONV_TRANSPOSE2D_BODY_H
#define TINYET_CONV_TRANSPOSE2D_BODY_H

#include "tinyet_conv_transpose2d.h"

void KERNEL(const element *input, element *output, void *scratch, const kernel_params *params) {
  const tinyet_conv_transpose2d_shape *const s = &params->shape;
  const int32_t in_count = s->in_c / s->groups, out_count = s->out_c / s->groups;
  const int32_t filter = s->kernel_h * s->kernel_w * in_count;
  tinyet_conv_transpose2d_tap *const taps = (tinyet_conv_transpose2d_tap *)scratch;
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t out_y = 0, row = 0, row_q = 0; out_y < s->out_h; out_y++) {
      for (int32_t out_x = 0, column = 0, column_q = 0; out_x < s->out_w; out_x++) {
        const int32_t count = tinyet_conv_transpose2d_taps(s, s->row_phases + 2 * row, row_q,
                                                           s->column_phases + 2 * column, column_q, taps);
        for (int32_t g = 0; g < s->groups; g++) {
          pixel(input + g * in_count, output, taps, count, in_count, filter, g * out_count, (g + 1) * out_count,
                &params->quant);
        }
        output += s->out_c;
        if (++column == s->stride_w) {
          column = 0, column_q++;
        }
      }
      if (++row == s->stride_h) {
        row = 0, row_q++;
      }
    }
    input += s->in_h * s->in_w * s->in_c;
  }
}

#endif
