/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tinyet_resize.h"

void tinyet_resize_nearest(const void *input, void *output, const tinyet_resize_nearest_params *params) {
  const tinyet_resize_nearest_params *const p = params;
  const int32_t row_bytes = p->out_w * p->pixel_bytes;
  const uint8_t *image = (const uint8_t *)input;
  uint8_t *out = (uint8_t *)output;
  for (int32_t n = 0; n < p->batch; n++) {
    for (int32_t y = 0; y < p->out_h; y++) {
      if (y != 0 && p->rows[y] == p->rows[y - 1]) {
        memcpy(out, out - row_bytes, (size_t)row_bytes);
        out += row_bytes;
        continue;
      }
      const uint8_t *const row = image + p->rows[y];
      for (int32_t x = 0; x < p->out_w; x++) {
        const uint8_t *pixel = row + p->columns[x];
        if (p->pixel_bytes < 16) {
          /* Shorter than a call of memcpy. */
          for (int32_t i = p->pixel_bytes; i != 0; i--) {
            *out++ = *pixel++;
          }
        } else {
          memcpy(out, pixel, (size_t)p->pixel_bytes);
          out += p->pixel_bytes;
        }
      }
    }
    image += p->image_bytes;
  }
}
