/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of an image with what windows see beside it. */
#ifndef TINYET_SURROUND_BODY_H
#define TINYET_SURROUND_BODY_H

#include "tinyet_conv2d.h"

static __attribute__((noinline)) void surround(int8_t *to, const int8_t *image, const tinyet_conv2d_shape *s,
                                               const tinyet_conv2d_shape *padded, int8_t padding) {
  const int32_t row = s->in_w * s->in_c, step = padded->in_w * s->in_c;
  memset(to, padding, (size_t)(padded->in_h * step));
  to += s->pad_top * step + s->pad_left * s->in_c;
  for (int32_t y = s->in_h; y > 0; y--) {
    memcpy(to, image, (size_t)row);
    to += step;
    image += row;
  }
}

#endif
