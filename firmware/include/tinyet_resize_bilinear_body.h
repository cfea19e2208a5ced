/* SPDX-License-Identifier: Apache-2.0 */
/* Bilinear resizing of integers of any type. The file that includes this has defined
 *
 *   KERNEL        the function's name
 *   element       the type of the elements
 *   wide          the type of a sum of four products
 *   rounded(sum)  the sum / 2^20, ties away from zero */
#ifndef TINYET_RESIZE_BILINEAR_BODY_H
#define TINYET_RESIZE_BILINEAR_BODY_H

#include "tinyet_resize.h"

void KERNEL(const element *input, element *output, const tinyet_resize_bilinear_integer_params *params) {
  const tinyet_resize_bilinear_integer_params *const p = params;
  for (int32_t n = 0; n < p->batch; n++) {
    for (int32_t y = 0; y < p->out_h; y++) {
      const element *const above = input + p->rows[2 * y], *const below = input + p->rows[2 * y + 1];
      const int32_t down = p->row_weights[y], up = 1024 - down;
      for (int32_t x = 0; x < p->out_w; x++) {
        const int32_t left = p->columns[2 * x], right = p->columns[2 * x + 1];
        const element *a = above + left, *b = above + right, *c = below + left, *d = below + right;
        const int32_t weight = p->column_weights[x], rest = 1024 - weight;
        const int32_t wa = up * rest, wb = up * weight, wc = down * rest, wd = down * weight;
        for (int32_t i = p->channels; i != 0; i--) {
          const wide sum = (wide)*a++ * wa + (wide)*b++ * wb + (wide)*c++ * wc + (wide)*d++ * wd;
          *output++ = rounded(sum);
        }
      }
    }
    input += p->in_h * p->in_w * p->channels;
  }
}

#endif
