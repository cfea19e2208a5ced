/* SPDX-License-Identifier: Apache-2.0 */
/* Any convolution of int16 values: as tinyet_conv2d_s8, two pixels' patches are copied to scratch, in pairs as tinyet_dot_2x2
 * reads them. The file that includes this has defined
 *
 *   KERNEL          the function's name
 *   kernel_params   its parameters, and kernel_quant: their member `quant`
 *   kernel_sum      the type of the sums
 *   rescaled(sum, channel, quant)   a sum in steps of the output */
#ifndef TINYET_CONV2D_S16_2X2_BODY_H
#define TINYET_CONV2D_S16_2X2_BODY_H

#include "tinyet_conv2d.h"
#include "tinyet_dot_2x2.h"

/* Elements first ... first + count - 1 of a patch. */
static void put(int16_t *patch, int32_t first, const int16_t *from, int32_t count) {
  int32_t k = first;
  const int32_t end = first + count;
  if ((k & 1) != 0 && k < end) {
    patch[tinyet_im2col_index(k++)] = *from++;
  }
  int16_t *out = patch + tinyet_im2col_index(k);
  for (; k + 2 <= end; k += 2) {
    memcpy(out, from, 4);
    from += 2;
    out += 4;
  }
  if (k < end) {
    *out = *from;
  }
}

static void put_zeros(int16_t *patch, int32_t first, int32_t count) {
  for (int32_t k = first; k < first + count; k++) {
    patch[tinyet_im2col_index(k)] = 0;
  }
}

static inline int16_t finish(kernel_sum sum, int32_t channel, const kernel_quant *q) {
  return (int16_t)tinyet_clamp(rescaled(sum, channel, q), q->clamp_low, q->clamp_high);
}

/* Channels first ... first + count - 1 of two pixels; both outputs may be the same. */
static void two_pixels(const int16_t *patch, const TINYET_ROM int8_t *w, int16_t *out_x, int16_t *out_y, int32_t steps,
                       int32_t first, int32_t count, const kernel_quant *q) {
  const int32_t end = first + count;
  for (int32_t c = first; c < end; c += 2) {
    const int32_t d = c + 1 < end ? c + 1 : c; /* an odd last channel has zeros for a partner */
    kernel_sum cx = q->bias[c], cy = cx, dx = q->bias[d], dy = dx;
    const int16_t *at = patch;
    for (int32_t left = steps; left > 0; left -= q->block) {
      const int32_t now = left < q->block ? left : q->block;
      int32_t sums[4] = {0, 0, 0, 0};
      w = tinyet_dot_2x2(w, at, now, sums);
      at += 4 * now;
      cx += sums[0], cy += sums[1], dx += sums[2], dy += sums[3];
    }
    if (d != c) {
      out_x[d] = finish(dx, d, q);
      out_y[d] = finish(dy, d, q);
    }
    out_x[c] = finish(cx, c, q);
    out_y[c] = finish(cy, c, q);
  }
}

/* One pixel's patch, in the order of the weights; taps outside the image read as zero. */
static void gather(const int16_t *image, int16_t *patch, int32_t out_y, int32_t out_x, int32_t first_c, int32_t count,
                   const tinyet_conv2d_shape *s) {
  const int32_t top = out_y * s->stride_h - s->pad_top, left = out_x * s->stride_w - s->pad_left;
  const int32_t whole = s->dilation_w == 1 && count == s->in_c && left >= 0 && left + s->kernel_w <= s->in_w ? 1 : 0;
  int32_t k = 0;
  for (int32_t i = 0; i < s->kernel_h; i++) {
    const int32_t y = top + i * s->dilation_h;
    const int32_t row = s->kernel_w * count;
    if (y < 0 || y >= s->in_h) {
      put_zeros(patch, k, row);
      k += row;
    } else if (whole != 0) {
      put(patch, k, image + (y * s->in_w + left) * count, row);
      k += row;
    } else {
      for (int32_t j = 0; j < s->kernel_w; j++) {
        const int32_t x = left + j * s->dilation_w;
        if (x < 0 || x >= s->in_w) {
          put_zeros(patch, k, count);
        } else {
          put(patch, k, image + (y * s->in_w + x) * s->in_c + first_c, count);
        }
        k += count;
      }
    }
  }
}

typedef int16_t element;
enum { STEP = 2 };

static inline void gather_patch(const int16_t *image, int16_t *patch, int32_t out_y, int32_t out_x, int32_t first,
                                int32_t count, const tinyet_conv2d_shape *s, const kernel_quant *q) {
  (void)q;
  gather(image, patch, out_y, out_x, first, count, s);
}

#include "tinyet_conv2d_body.h"

#endif
