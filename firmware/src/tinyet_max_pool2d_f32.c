/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tinyet_max_pool2d.h"
#include "tinyet_window.h"

/* A NaN wins over everything and stays: no comparison with it is true. */
static inline float greater(float x, float best) { return x > best || x != x ? x : best; }

void tinyet_max_pool2d_f32(const float *input, float *output, const tinyet_max_pool2d_params *params) {
  const tinyet_max_pool2d_params *const p = params;
  const int32_t row_step = p->dilation_h * p->in_w * p->channels, column_step = p->dilation_w * p->channels;
  for (int32_t n = 0; n < p->batch; n++) {
    for (int32_t out_y = 0; out_y < p->out_h; out_y++) {
      const tinyet_span y = tinyet_span_inside(out_y * p->stride_h - p->pad_top, p->kernel_h, p->dilation_h, p->in_h);
      for (int32_t out_x = 0; out_x < p->out_w; out_x++) {
        const tinyet_span x =
            tinyet_span_inside(out_x * p->stride_w - p->pad_left, p->kernel_w, p->dilation_w, p->in_w);
        const int32_t corner = (y.start * p->in_w + x.start) * p->channels;
        for (int32_t c = 0; c < p->channels; c++) {
          float best = -INFINITY;
          int32_t row = corner + c;
          for (int32_t i = 0; i < y.count; i++) {
            int32_t at = row;
            for (int32_t j = 0; j < x.count; j++) {
              best = greater(input[at], best);
              at += column_step;
            }
            row += row_step;
          }
          *output++ = best;
        }
      }
    }
    input += p->in_h * p->in_w * p->channels;
  }
}
