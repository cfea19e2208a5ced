/* SPDX-License-Identifier: Apache-2.0 */
/* What specialised convolutions of one group for cores with DSP instructions have in common: their shape, and how inputs are widened
 * to int16, a pair in each word: see tinyet_dsp.h. */
#ifndef TINYET_CONV2D_DSP_H
#define TINYET_CONV2D_DSP_H

#include "tinyet_dsp.h"

/* Words that hold `channels` channels of one pixel: pairs (0, 2), (1, 3), (4, 6), … and what is left in order. */
TINYET_DSP_INLINE int32_t tinyet_int16x2_count_dsp(int32_t channels) { return channels / 4 * 2 + (channels % 4 + 1) / 2; }

/* One pixel, widened, into every `width`-th word. */
TINYET_DSP_INLINE void tinyet_widen_dsp(uint32_t *to, const int8_t *from, const int32_t channels, const int32_t width) {
#pragma GCC unroll 4
  for (int32_t c = 0; c < (channels & ~3); c += 4) {
    const uint32_t word = tinyet_load_dsp(from + c);
    to[0] = tinyet_even_bytes_dsp(word);
    to[width] = tinyet_odd_bytes_dsp(word);
    to += 2 * width;
  }
  from += channels & ~3;
  if ((channels & 3) > 1) {
    *to = tinyet_low_int16x2_dsp((uint32_t)(int32_t)from[0], (uint32_t)(int32_t)from[1]);
    to += width;
    from += 2;
  }
  if (channels & 1) {
    *to = (uint32_t)(int32_t)from[0]; /* the upper half meets a weight of zero */
  }
}

/* `count` times one value into every `width`-th word. */
TINYET_DSP_INLINE void tinyet_fill_dsp(uint32_t *to, uint32_t value, const int32_t count, const int32_t width) {
  for (const uint32_t *const end = to + count * width; to != end; to += width) {
    *to = value;
  }
}

/* What a specialised convolution is made for; literals. */
typedef struct {
  int32_t batch, in_h, in_w, in_c;
  int32_t out_h, out_w, out_c;
  int32_t kernel_h, kernel_w;
  int32_t stride_h, stride_w, dilation_h, dilation_w;
  int32_t pad_top, pad_left;
  int32_t in_pixel_stride, out_pixel_stride; /* bytes from pixel to pixel: the channels, and what else lies between */
  int32_t zero_point;          /* what padding reads as */
} tinyet_conv2d_shape_dsp;

#endif
