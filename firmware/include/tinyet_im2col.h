/* SPDX-License-Identifier: Apache-2.0 */
/* im2col: what the window of an output pixel sees (its patch), as int16_t in scratch, those of two pixels interleaved as
 * tinyet_dot_2x2 reads them. */
#ifndef TINYET_IM2COL_H
#define TINYET_IM2COL_H

#include "tinyet_conv2d.h"
#include "tinyet_dot_2x2.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elements first ... first + count - 1 of a patch. */
static __attribute__((unused)) void tinyet_im2col_copy(int16_t *patch, int32_t first, const int8_t *from, int32_t count) {
  int32_t k = first;
  const int32_t end = first + count;
  if ((k & 1) != 0 && k < end) {
    patch[tinyet_im2col_index(k++)] = *from++;
  }
  int16_t *out = patch + tinyet_im2col_index(k);
  for (; k + 4 <= end; k += 4) {
#if TINYET_HAS_SIMD32
    const uint32_t word = tinyet_load4(from);
    const int32_t even = tinyet_even_bytes(word), odd = tinyet_odd_bytes(word);
    *(tinyet_int16x2 *)(void *)out = tinyet_both_low(even, odd);
    *(tinyet_int16x2 *)(void *)(out + 4) = tinyet_both_high(even, odd);
#else
    out[0] = from[0], out[1] = from[1], out[4] = from[2], out[5] = from[3];
#endif
    from += 4;
    out += 8;
  }
  for (; k < end; k++) {
    patch[tinyet_im2col_index(k)] = *from++;
  }
}

static __attribute__((unused)) void tinyet_im2col_fill(int16_t *patch, int32_t first, int32_t value, int32_t count) {
  for (int32_t k = first; k < first + count; k++) {
    patch[tinyet_im2col_index(k)] = (int16_t)value;
  }
}

/* One pixel's patch, in the order of the weights; taps outside the image read as the zero point. */
static __attribute__((unused)) void tinyet_im2col(const int8_t *image, int16_t *patch, int32_t out_y, int32_t out_x,
                                                  int32_t first_c, int32_t count, const tinyet_conv2d_shape *s,
                                                  int32_t zero_point) {
  const int32_t top = out_y * s->stride_h - s->pad_top, left = out_x * s->stride_w - s->pad_left;
  const int32_t whole = s->dilation_w == 1 && count == s->in_c && left >= 0 && left + s->kernel_w <= s->in_w ? 1 : 0;
  int32_t k = 0;
  for (int32_t i = 0; i < s->kernel_h; i++) {
    const int32_t y = top + i * s->dilation_h;
    const int32_t row = s->kernel_w * count;
    if (y < 0 || y >= s->in_h) {
      tinyet_im2col_fill(patch, k, zero_point, row);
      k += row;
    } else if (whole != 0) {
      tinyet_im2col_copy(patch, k, image + (y * s->in_w + left) * count, row);
      k += row;
    } else {
      for (int32_t j = 0; j < s->kernel_w; j++) {
        const int32_t x = left + j * s->dilation_w;
        if (x < 0 || x >= s->in_w) {
          tinyet_im2col_fill(patch, k, zero_point, count);
        } else {
          tinyet_im2col_copy(patch, k, image + (y * s->in_w + x) * s->in_c + first_c, count);
        }
        k += count;
      }
    }
  }
}

#ifdef __cplusplus
}
#endif

#endif
