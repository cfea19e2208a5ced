/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_resize.h"

void tinyet_resize_bilinear_s16(const int16_t *input, int16_t *output,
                                const tinyet_resize_bilinear_integer_params *params) {
  const tinyet_resize_bilinear_integer_params *const p = params;
  for (int32_t n = 0; n < p->batch; n++) {
    for (int32_t y = 0; y < p->out_h; y++) {
      const int16_t *const above = input + p->rows[2 * y], *const below = input + p->rows[2 * y + 1];
      const int32_t down = p->row_weights[y], up = 1024 - down;
      for (int32_t x = 0; x < p->out_w; x++) {
        const int32_t left = p->columns[2 * x], right = p->columns[2 * x + 1];
        const int16_t *a = above + left, *b = above + right, *c = below + left, *d = below + right;
        const int32_t weight = p->column_weights[x], rest = 1024 - weight;
        const int32_t wa = up * rest, wb = up * weight, wc = down * rest, wd = down * weight;
        for (int32_t i = p->channels; i != 0; i--) {
          const int64_t sum = (int64_t)*a++ * wa + (int64_t)*b++ * wb + (int64_t)*c++ * wc + (int64_t)*d++ * wd;
          /* Halves away from zero: a negative sum is lowered by the least there is. */
          *output++ = (int16_t)((sum + (sum >> 63) + (INT32_C(1) << 19)) >> 20);
        }
      }
    }
    input += p->in_h * p->in_w * p->channels;
  }
}
