/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_max_pool2d.h"
#include "tinyet_window.h"

static inline int32_t greater(int32_t a, int32_t b) { return a > b ? a : b; }

/* One output pixel: the taps inside the image are rows x columns, `row_step` and `column_step` elements apart. */
static void pool_pixel(const int16_t *input, int16_t *output, int32_t channels, int32_t rows, int32_t columns,
                       int32_t row_step, int32_t column_step) {
  for (int32_t c = 0; c < channels; c++) {
    int32_t m = INT16_MIN;
    const int16_t *row = input + c;
    for (int32_t i = rows; i != 0; i--) {
      const int16_t *x = row;
      for (int32_t j = columns; j != 0; j--) {
        m = greater(*x, m);
        x += column_step;
      }
      row += row_step;
    }
    *output++ = (int16_t)m;
  }
}

void tinyet_max_pool2d_s16(const int16_t *input, int16_t *output, const tinyet_max_pool2d_params *params) {
  const tinyet_max_pool2d_params *const p = params;
  const int32_t row_step = p->dilation_h * p->in_w * p->channels, column_step = p->dilation_w * p->channels;
  for (int32_t n = 0; n < p->batch; n++) {
    for (int32_t out_y = 0; out_y < p->out_h; out_y++) {
      const tinyet_span y = tinyet_span_inside(out_y * p->stride_h - p->pad_top, p->kernel_h, p->dilation_h, p->in_h);
      for (int32_t out_x = 0; out_x < p->out_w; out_x++) {
        const tinyet_span x =
            tinyet_span_inside(out_x * p->stride_w - p->pad_left, p->kernel_w, p->dilation_w, p->in_w);
        /* An empty span may start outside the image: then no pointer is formed and no tap is read. */
        const int32_t taps = y.count * x.count;
        const int16_t *const corner = taps != 0 ? input + (y.start * p->in_w + x.start) * p->channels : input;
        pool_pixel(corner, output, p->channels, taps != 0 ? y.count : 0, x.count, row_step, column_step);
        output += p->channels;
      }
    }
    input += p->in_h * p->in_w * p->channels;
  }
}
