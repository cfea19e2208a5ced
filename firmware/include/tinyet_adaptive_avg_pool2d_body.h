/* SPDX-License-Identifier: Apache-2.0 */
/* Average pooling of integers of any type over windows given by tables. The file that includes this has defined KERNEL, the
 * function's name, and what tinyet_average_body.h asks for. */
#ifndef TINYET_ADAPTIVE_AVG_POOL2D_BODY_H
#define TINYET_ADAPTIVE_AVG_POOL2D_BODY_H

#include "tinyet_adaptive_avg_pool2d.h"
#include "tinyet_average_body.h"

void KERNEL(const element *input, element *output, const tinyet_adaptive_avg_pool2d_s8_params *params) {
  const tinyet_adaptive_avg_pool2d_shape *const s = &params->shape;
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t out_y = 0; out_y < s->out_h; out_y++) {
      const int32_t top = s->rows[2 * out_y], height = s->rows[2 * out_y + 1];
      for (int32_t out_x = 0; out_x < s->out_w; out_x++) {
        const int32_t left = s->columns[2 * out_x], width = s->columns[2 * out_x + 1];
        const tinyet_division division = tinyet_division_at(params->divisions, height * width - params->first_count);
        average_pixel(input + (top * s->in_w + left) * s->channels, output, s->channels, height, width,
                      s->in_w * s->channels, s->channels, &division);
        output += s->channels;
      }
    }
    input += s->in_h * s->in_w * s->channels;
  }
}

#endif
