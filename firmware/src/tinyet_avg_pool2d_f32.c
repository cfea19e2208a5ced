/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_avg_pool2d.h"
#include "tinyet_window.h"

void tinyet_avg_pool2d_f32(const float *input, float *output, const tinyet_avg_pool2d_f32_params *params) {
  const tinyet_avg_pool2d_shape *const s = &params->shape;
  const int32_t row_step = s->dilation_h * s->in_w * s->channels, column_step = s->dilation_w * s->channels;
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t out_y = 0; out_y < s->out_h; out_y++) {
      const tinyet_span y = tinyet_span_inside(out_y * s->stride_h - s->pad_top, s->kernel_h, s->dilation_h, s->in_h);
      for (int32_t out_x = 0; out_x < s->out_w; out_x++) {
        const tinyet_span x =
            tinyet_span_inside(out_x * s->stride_w - s->pad_left, s->kernel_w, s->dilation_w, s->in_w);
        const float divisor = (float)(params->divisor != 0 ? params->divisor : y.count * x.count);
        const int32_t corner = (y.start * s->in_w + x.start) * s->channels;
        for (int32_t c = 0; c < s->channels; c++) {
          float sum = 0.0f;
          int32_t row = corner + c;
          for (int32_t i = 0; i < y.count; i++) {
            int32_t at = row;
            for (int32_t j = 0; j < x.count; j++) {
              sum += input[at];
              at += column_step;
            }
            row += row_step;
          }
          *output++ = sum / divisor;
        }
      }
    }
    input += s->in_h * s->in_w * s->channels;
  }
}
