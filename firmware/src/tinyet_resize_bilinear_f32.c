/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_resize.h"

void tinyet_resize_bilinear_f32(const float *input, float *output, const tinyet_resize_bilinear_f32_params *params) {
  const tinyet_resize_bilinear_f32_params *const p = params;
  for (int32_t n = 0; n < p->batch; n++) {
    for (int32_t y = 0; y < p->out_h; y++) {
      const float *const above = input + p->rows[2 * y], *const below = input + p->rows[2 * y + 1];
      const float down = p->row_weights[y], up = 1.0f - down;
      for (int32_t x = 0; x < p->out_w; x++) {
        const int32_t left = p->columns[2 * x], right = p->columns[2 * x + 1];
        const float weight = p->column_weights[x], rest = 1.0f - weight;
        for (int32_t i = 0; i < p->channels; i++) {
          const float top = above[left + i] * rest + above[right + i] * weight;
          const float bottom = below[left + i] * rest + below[right + i] * weight;
          *output++ = top * up + bottom * down;
        }
      }
    }
    input += p->in_h * p->in_w * p->channels;
  }
}
