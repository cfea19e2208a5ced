/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum pooling of integers of any type. The file that includes this has defined
 *
 *   KERNEL    the function's name
 *   element   the type of the elements
 *   LEAST     its least value
 *   QUADS     1: four channels stay in registers while the window is walked; 0: one */
#ifndef TINYET_MAX_POOL2D_BODY_H
#define TINYET_MAX_POOL2D_BODY_H

#include "tinyet_max_pool2d.h"
#include "tinyet_window.h"

static inline int32_t greater(int32_t a, int32_t b) { return a > b ? a : b; }

/* One output pixel: the taps inside the image are rows x columns, `row_step` and `column_step` elements apart. */
static void pool_pixel(const element *input, element *output, int32_t channels, int32_t rows, int32_t columns,
                       int32_t row_step, int32_t column_step) {
  int32_t c = 0;
#if QUADS
  for (; c + 4 <= channels; c += 4) {
    int32_t m0 = LEAST, m1 = LEAST, m2 = LEAST, m3 = LEAST;
    const element *row = input + c;
    for (int32_t i = rows; i != 0; i--) {
      const element *x = row;
      for (int32_t j = columns; j != 0; j--) {
        m0 = greater(x[0], m0), m1 = greater(x[1], m1), m2 = greater(x[2], m2), m3 = greater(x[3], m3);
        x += column_step;
      }
      row += row_step;
    }
    output[0] = (element)m0, output[1] = (element)m1, output[2] = (element)m2, output[3] = (element)m3;
    output += 4;
  }
#endif
  for (; c < channels; c++) {
    int32_t m = LEAST;
    const element *row = input + c;
    for (int32_t i = rows; i != 0; i--) {
      const element *x = row;
      for (int32_t j = columns; j != 0; j--) {
        m = greater(*x, m);
        x += column_step;
      }
      row += row_step;
    }
    *output++ = (element)m;
  }
}

void KERNEL(const element *input, element *output, const tinyet_max_pool2d_params *params) {
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
        const element *const corner = taps != 0 ? input + (y.start * p->in_w + x.start) * p->channels : input;
        pool_pixel(corner, output, p->channels, taps != 0 ? y.count : 0, x.count, row_step, column_step);
        output += p->channels;
      }
    }
    input += p->in_h * p->in_w * p->channels;
  }
}

#endif
