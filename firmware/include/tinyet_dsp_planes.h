/* SPDX-License-Identifier: Apache-2.0 */
/* Planes of int16 for the depthwise kernels of cores with DSP instructions: see tinyet_dsp.h.
 *
 * Two or four channels at a time (a group) are taken out of the image and widened into as many planes in scratch. Along the
 * axis u, which is contiguous in a plane, two taps are one multiply instruction; u is the width or the height of the image,
 * whichever is cheaper, and v is the other axis. With a dilation d along u a row of a plane has d parts of `part` values, each
 * with every d-th pixel, so that the taps of an output are neighbours: what is P pixels behind the first that any output
 * looks at is value P / d of part P % d. The planes hold the rows of a strip of output rows; strips share rows, which are
 * moved. */
#ifndef TINYET_DSP_PLANES_H
#define TINYET_DSP_PLANES_H

#include "tinyet_dsp.h"

/* Sizes in pixels, steps in bytes; literals. */
typedef struct {
  int32_t batch, channels, group, multiplier; /* multiplier: output channels of one of the input */
  int32_t in_u, in_v, in_step_u, in_step_v;
  int32_t out_u, out_v, out_step_u, out_step_v;
  int32_t kernel_u, kernel_v, stride_u, stride_v, dilation_u, dilation_v;
  int32_t pad_u, pad_v; /* before the first pixel */
  int32_t zero_point, out_zero_point;
  int32_t part;  /* values, an even number; dilation_u of them are a row of a plane */
  int32_t apart; /* outputs so far apart along u look at the same part, `between` values from each other */
  int32_t between;
  int32_t strip; /* output rows */
} tinyet_dsp_depthwise;

/* Words of a plane's row. */
TINYET_DSP_INLINE int32_t tinyet_dsp_row_words(const tinyet_dsp_depthwise s) { return s.dilation_u * s.part / 2; }

/* Input rows of a strip. */
TINYET_DSP_INLINE int32_t tinyet_dsp_strip_rows(const tinyet_dsp_depthwise s) {
  return (s.strip - 1) * s.stride_v + (s.kernel_v - 1) * s.dilation_v + 1;
}

/* The offset of the rounding (tinyet_dsp.h) of a channel whose output depends on its sum: known by the shift. */
TINYET_DSP_INLINE int32_t tinyet_dsp_offset(int32_t shift, int32_t zero_point, const tinyet_dsp_rounding rounding) {
  if (rounding.form == TINYET_DSP_ONE_SIDED) {
    return (1 << (rounding.exponent - 1)) + zero_point * (1 << rounding.exponent) + (1 << (shift - 2));
  }
  return rounding.form == TINYET_DSP_TWO_SIDED ? (2 * zero_point + 1) * (1 << (shift - 1)) : zero_point;
}

/* The channels of a group, of one pixel. */
TINYET_DSP_INLINE uint32_t tinyet_dsp_load_group(const int8_t *from, const int32_t group) {
  return group == 4 ? tinyet_dsp_load(from) : tinyet_dsp_load_half(from);
}

/* Two pixels into a word of each plane. */
TINYET_DSP_INLINE void tinyet_dsp_plane_word(uint32_t *to, uint32_t first, uint32_t second, const int32_t plane,
                                             const int32_t group) {
  const uint32_t low = tinyet_dsp_low_halves(first, second);
  to[0] = tinyet_dsp_even(low);
  to[plane] = tinyet_dsp_odd(low);
  if (group == 4) {
    const uint32_t high = tinyet_dsp_high_halves(first, second);
    to[2 * plane] = tinyet_dsp_even(high);
    to[3 * plane] = tinyet_dsp_odd(high);
  }
}

/* `count` pixels, `step` bytes apart, into the values from `first` on of a row; what shares a word with them is blank. */
TINYET_DSP_INLINE void tinyet_dsp_plane_values(uint32_t *to, const int8_t *from, int32_t first, int32_t count,
                                               const int32_t step, const int32_t plane, const int32_t group,
                                               const uint32_t blank) {
  to += first / 2;
  if (first % 2 != 0) {
    tinyet_dsp_plane_word(to++, blank, tinyet_dsp_load_group(from, group), plane, group);
    from += step;
    count--;
  }
#pragma GCC unroll 4
  for (int32_t i = 0; i < count / 2; i++) {
    tinyet_dsp_plane_word(to++, tinyet_dsp_load_group(from, group), tinyet_dsp_load_group(from + step, group), plane,
                          group);
    from += 2 * step;
  }
  if (count % 2 != 0) {
    tinyet_dsp_plane_word(to, tinyet_dsp_load_group(from, group), blank, plane, group);
  }
}

/* One input row of a group into the row `to` of its planes; what is outside the image stays. */
TINYET_DSP_INLINE void tinyet_dsp_plane_row(uint32_t *to, const int8_t *from, const int32_t plane, const uint32_t blank,
                                            const tinyet_dsp_depthwise s) {
  const int32_t d = s.dilation_u, reach = (s.out_u - 1) * s.stride_u + (s.kernel_u - 1) * d + 1;
  const int32_t end = reach < s.pad_u + s.in_u ? reach : s.pad_u + s.in_u;
  for (int32_t part = 0; part < d; part++) {
    const int32_t first = s.pad_u > part ? (s.pad_u - part + d - 1) / d : 0;
    const int32_t count = (end - part + d - 1) / d - first;
    if (count > 0) {
      tinyet_dsp_plane_values(to + part * s.part / 2, from + (part + first * d - s.pad_u) * s.in_step_u, first, count,
                              d * s.in_step_u, plane, s.group, blank);
    }
  }
}

/* Both halves of all planes, once: what is never in the image. */
TINYET_DSP_INLINE void tinyet_dsp_blank_planes(uint32_t *planes, const tinyet_dsp_depthwise s) {
  const uint32_t blank = tinyet_dsp_both(s.zero_point);
  for (int32_t i = 0; i < s.group * tinyet_dsp_strip_rows(s) * tinyet_dsp_row_words(s); i++) {
    planes[i] = blank;
  }
}

/* The strip of output rows from `top` on, of the group of channels at `input`. */
TINYET_DSP_INLINE void tinyet_dsp_fill_planes(uint32_t *planes, const int8_t *input, int32_t top,
                                              const tinyet_dsp_depthwise s) {
  const int32_t row = tinyet_dsp_row_words(s), rows = tinyet_dsp_strip_rows(s), plane = rows * row;
  const int32_t kept = rows - s.strip * s.stride_v; /* rows that the next strip needs, too */
  const uint32_t blank = tinyet_dsp_both(s.zero_point), blank_pixel = ((uint32_t)s.zero_point & 0xffu) * 0x01010101u;
  int32_t r = 0;
  if (s.strip < s.out_v && kept > 0 && top > 0) {
    for (int32_t i = 0; i < kept * row; i++) {
      for (int32_t k = 0; k < s.group; k++) {
        planes[k * plane + i] = planes[k * plane + i + (rows - kept) * row];
      }
    }
    r = kept;
  }
  for (; r < rows; r++) {
    const int32_t v = top * s.stride_v - s.pad_v + r;
    uint32_t *const to = planes + r * row;
    if ((uint32_t)v < (uint32_t)s.in_v) {
      tinyet_dsp_plane_row(to, input + v * s.in_step_v, plane, blank_pixel, s);
    } else if (s.strip < s.out_v) {
      for (int32_t i = 0; i < row; i++) {
        for (int32_t k = 0; k < s.group; k++) {
          to[k * plane + i] = blank;
        }
      }
    }
  }
}

/* The output rows of the strip at `top`. */
TINYET_DSP_INLINE int32_t tinyet_dsp_rows_left(int32_t top, const tinyet_dsp_depthwise s) {
  const int32_t left = s.out_v - top;
  return s.out_v % s.strip == 0 || left > s.strip ? s.strip : left;
}

#endif
