/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised int8 transposed convolutions of one group for cores with DSP instructions: see tinyet_dsp.h.
 *
 * Polyphase: output rows and columns that are equal modulo the stride read the input through the same taps. Each such phase is an
 * ordinary convolution of stride 1, computed as tinyet_conv2d_dsp.h does it, four output pixels of a phase at a time. All
 * phases have as many taps as the largest one, zeros where they have fewer, so that they share their code; the weight
 * stream holds one phase after another, column by column. */
#ifndef TINYET_CONV_TRANSPOSE2D_DSP_H
#define TINYET_CONV_TRANSPOSE2D_DSP_H

#include "tinyet_conv2d_dsp.h"

/* Literals. */
typedef struct {
  int32_t batch, in_h, in_w, in_c;
  int32_t out_h, out_w, out_c;
  int32_t taps_h, taps_w; /* of a phase */
  int32_t stride_h, stride_w;
  int32_t pad_top, pad_left; /* that crop the output */
  int32_t in_pixel_stride, out_pixel_stride; /* bytes from pixel to pixel: the channels, and what else lies between */
  int32_t zero_point;        /* what is read outside the image */
  int32_t unroll;
} tinyet_conv_transpose2d_shape_dsp;

/* The inputs of four neighbouring pixels of a phase, whose first tap is at (top, left). */
TINYET_DSP_INLINE void tinyet_phase_pixels_dsp(uint32_t *to, const int8_t *image, const int32_t top, const int32_t left,
                                               const tinyet_conv_transpose2d_shape_dsp s) {
  const int32_t pairs = tinyet_int16x2_count_dsp(s.in_c), width = s.taps_w + 3;
  const uint32_t blank = tinyet_both_dsp(s.zero_point);
  for (int32_t y = top; y < top + s.taps_h; y++) {
    for (int32_t i = 0; i < width; i++) {
      const int32_t x = left + i;
      if ((uint32_t)y < (uint32_t)s.in_h && (uint32_t)x < (uint32_t)s.in_w) {
        tinyet_widen_dsp(to + i, image + (y * s.in_w + x) * s.in_pixel_stride, s.in_c, width);
      } else {
        tinyet_fill_dsp(to + i, blank, pairs, width);
      }
    }
    to += pairs * width;
  }
}

/* Needs four output columns of each phase; where they are no multiple of 4, the last four overlap those before.
 * scratch: 4 * taps_h * pairs * (taps_w + 3) bytes. */
TINYET_DSP_INLINE void tinyet_conv_transpose2d_s8_polyphase_4x2_dsp(const int8_t *input, int8_t *output, void *scratch,
                                                                    const int32_t *weights, const tinyet_conv_transpose2d_shape_dsp s,
                                                                    const tinyet_rounding_dsp rounding) {
  const int32_t lanes = s.taps_h * tinyet_int16x2_count_dsp(s.in_c), width = s.taps_w + 3;
  const tinyet_lanes_dsp g = {lanes, s.taps_w, 1, 1, width, width, s.unroll};
  const int32_t step = s.stride_w * s.out_pixel_stride, stream = (s.out_c + 1) / 2 * (lanes * s.taps_w + 8);
  uint32_t *const pixels = (uint32_t *)scratch;
  for (int32_t n = 0; n < s.batch; n++) {
    for (int32_t out_y = 0; out_y < s.out_h; out_y++) {
      const int32_t down = out_y + s.pad_top, phase_y = out_y % s.stride_h;
      for (int32_t phase_x = 0; phase_x < s.stride_w; phase_x++) {
        const int32_t columns = (s.out_w - phase_x + s.stride_w - 1) / s.stride_w;
        const int32_t left = (phase_x + s.pad_left) / s.stride_w - (s.taps_w - 1);
        for (int32_t column = 0; column < columns; column += 4) {
          if (column > columns - 4) {
            column = columns - 4;
          }
          tinyet_phase_pixels_dsp(pixels, input, down / s.stride_h - (s.taps_h - 1), left + column, s);
          const int32_t *w = weights + (phase_y * s.stride_w + phase_x) * stream;
          int8_t *out = output + (out_y * s.out_w + column * s.stride_w + phase_x) * s.out_pixel_stride;
          for (const int8_t *const end = out + (s.out_c & ~1); out != end; out += 2) {
            w = tinyet_channels_dsp(w, pixels, out, step, 1, g, rounding);
          }
          if (s.out_c & 1) {
            (void)tinyet_channels_dsp(w, pixels, out, step, 0, g, rounding);
          }
        }
      }
    }
    input += s.in_h * s.in_w * s.in_pixel_stride;
    output += s.out_h * s.out_w * s.out_pixel_stride;
  }
}

#endif
