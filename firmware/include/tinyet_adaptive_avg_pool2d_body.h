/* SPDX-License-Identifier: Apache-2.0 */
/* Average pooling of integers of any type over windows given by tables. The file that includes this has defined KERNEL, the
 * function's name, and what tinyet_average_body.h asks for. */
#ifndef TINYET_ADAPTIVE_AVG_POOL2D_BODY_H
#define TINYET_ADAPTIVE_AVG_POOL2D_BODY_H

#include "tinyet_adaptive_avg_pool2d.h"
#include "tinyet_average_body.h"

#define OF(field) TINYET_EXTENT(s->field)

void KERNEL(const element *input, element *output, const tinyet_adaptive_avg_pool2d_s8_params *params) {
  const tinyet_adaptive_avg_pool2d_shape *const s = &params->shape;
  for (tinyet_extent n = 0; n < OF(batch); n++) {
    for (tinyet_extent out_y = 0; out_y < OF(out_h); out_y++) {
      const tinyet_extent top = OF(rows[2 * out_y]), height = OF(rows[2 * out_y + 1]);
      for (tinyet_extent out_x = 0; out_x < OF(out_w); out_x++) {
        const tinyet_extent left = OF(columns[2 * out_x]), width = OF(columns[2 * out_x + 1]);
        const window_division division = DIVISION_AT(params->divisions, height * width - params->first_count);
        average_pixel(input + (top * OF(in_w) + left) * OF(channels), output, OF(channels), height, width,
                      OF(in_w) * OF(channels), OF(channels), &division);
        output += OF(channels);
      }
    }
    input += OF(in_h) * OF(in_w) * OF(channels);
  }
}

#undef OF

#endif
