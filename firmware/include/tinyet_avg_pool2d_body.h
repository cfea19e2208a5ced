/* SPDX-License-Identifier: Apache-2.0 */
/* Average pooling of integers of any type. The file that includes this has defined KERNEL, the function's name, and what
 * tinyet_average_body.h asks for. */
#ifndef TINYET_AVG_POOL2D_BODY_H
#define TINYET_AVG_POOL2D_BODY_H

#include "tinyet_average_body.h"
#include "tinyet_avg_pool2d.h"
#include "tinyet_window.h"

#define OF(field) TINYET_EXTENT(s->field)

void KERNEL(const element *input, element *output, const tinyet_avg_pool2d_s8_params *params) {
  const tinyet_avg_pool2d_shape *const s = &params->shape;
  const tinyet_extent row_step = OF(dilation_h) * OF(in_w) * OF(channels), column_step = OF(dilation_w) * OF(channels);
  for (tinyet_extent n = 0; n < OF(batch); n++) {
    for (tinyet_extent out_y = 0; out_y < OF(out_h); out_y++) {
      const tinyet_short_span y =
          tinyet_short_span_inside(out_y * OF(stride_h) - OF(pad_top), OF(kernel_h), OF(dilation_h), OF(in_h));
      for (tinyet_extent out_x = 0; out_x < OF(out_w); out_x++) {
        const tinyet_short_span x =
            tinyet_short_span_inside(out_x * OF(stride_w) - OF(pad_left), OF(kernel_w), OF(dilation_w), OF(in_w));
        const window_division division = DIVISION_AT(params->divisions, y.count * x.count - params->first_count);
        average_pixel(input + (y.start * OF(in_w) + x.start) * OF(channels), output, OF(channels), y.count, x.count,
                      row_step, column_step, &division);
        output += OF(channels);
      }
    }
    input += OF(in_h) * OF(in_w) * OF(channels);
  }
}

#undef OF

#endif
