/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_adaptive_avg_pool2d.h"
#include "tinyet_average.h"

void tinyet_adaptive_avg_pool2d_s16(const int16_t *input, int16_t *output,
                                    const tinyet_adaptive_avg_pool2d_s8_params *params) {
  const tinyet_adaptive_avg_pool2d_shape *const s = &params->shape;
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t out_y = 0; out_y < s->out_h; out_y++) {
      const int32_t top = s->rows[2 * out_y], height = s->rows[2 * out_y + 1];
      for (int32_t out_x = 0; out_x < s->out_w; out_x++) {
        const int32_t left = s->columns[2 * out_x], width = s->columns[2 * out_x + 1];
        const tinyet_division division = tinyet_division_at(params->divisions, height * width - params->first_count);
        tinyet_average_pixel_s16(input + (top * s->in_w + left) * s->channels, output, s->channels, height, width,
                                 s->in_w * s->channels, s->channels, &division);
        output += s->channels;
      }
    }
    input += s->in_h * s->in_w * s->channels;
  }
}
