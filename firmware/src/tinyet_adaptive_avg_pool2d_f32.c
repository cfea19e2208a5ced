/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_adaptive_avg_pool2d.h"

void tinyet_adaptive_avg_pool2d_f32(const float *input, float *output, const tinyet_adaptive_avg_pool2d_shape *params) {
  const tinyet_adaptive_avg_pool2d_shape *const s = params;
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t out_y = 0; out_y < s->out_h; out_y++) {
      const int32_t top = s->rows[2 * out_y], height = s->rows[2 * out_y + 1];
      for (int32_t out_x = 0; out_x < s->out_w; out_x++) {
        const int32_t left = s->columns[2 * out_x], width = s->columns[2 * out_x + 1];
        const float count = (float)(height * width);
        for (int32_t c = 0; c < s->channels; c++) {
          const float *row = input + (top * s->in_w + left) * s->channels + c;
          float sum = 0.0f;
          for (int32_t i = 0; i < height; i++) {
            for (int32_t j = 0; j < width; j++) {
              sum += row[j * s->channels];
            }
            row += s->in_w * s->channels;
          }
          *output++ = sum / count;
        }
      }
    }
    input += s->in_h * s->in_w * s->channels;
  }
}
