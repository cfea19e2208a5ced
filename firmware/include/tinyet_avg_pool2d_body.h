/* SPDX-License-Identifier: Apache-2.0 */
/* Average pooling of integers of any type. The file that includes this has defined KERNEL, the function's name, and what
 * tinyet_average_body.h asks for. */
#ifndef TINYET_AVG_POOL2D_BODY_H
#define TINYET_AVG_POOL2D_BODY_H

#include "tinyet_average_body.h"
#include "tinyet_avg_pool2d.h"
#include "tinyet_window.h"

void KERNEL(const element *input, element *output, const tinyet_avg_pool2d_s8_params *params) {
  const tinyet_avg_pool2d_shape *const s = &params->shape;
  const int32_t row_step = s->dilation_h * s->in_w * s->channels, column_step = s->dilation_w * s->channels;
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t out_y = 0; out_y < s->out_h; out_y++) {
      const tinyet_span y = tinyet_span_inside(out_y * s->stride_h - s->pad_top, s->kernel_h, s->dilation_h, s->in_h);
      for (int32_t out_x = 0; out_x < s->out_w; out_x++) {
        const tinyet_span x =
            tinyet_span_inside(out_x * s->stride_w - s->pad_left, s->kernel_w, s->dilation_w, s->in_w);
        const tinyet_division division = tinyet_division_at(params->divisions, y.count * x.count - params->first_count);
        average_pixel(input + (y.start * s->in_w + x.start) * s->channels, output, s->channels, y.count, x.count,
                      row_step, column_step, &division);
        output += s->channels;
      }
    }
    input += s->in_h * s->in_w * s->channels;
  }
}

#endif
