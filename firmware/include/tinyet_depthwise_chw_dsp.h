/* SPDX-License-Identifier: Apache-2.0 */
/* Planes of int16 (chw: channel by channel) for the depthwise kernels of cores with DSP instructions: see tinyet_dsp.h.
 *
 * Two or four channels at a time (a group) are taken out of the image and widened into as many planes in scratch. Along the
 * axis u, which is contiguous in a plane, two taps are one multiply instruction; u is the width or the height of the image,
 * whichever is cheaper, and v is the other axis. With a dilation d along u a row of a plane has d parts of `part` values, each
 * with every d-th pixel, so that the taps of an output are neighbours: what is P pixels behind the first that any output
 * looks at is value P / d of part P % d. The planes hold the rows of a tile of output rows; tiles share rows, which are
 * moved, where a group of channels is done with before the next one: else they are taken out of the image again. */
#ifndef TINYET_DEPTHWISE_CHW_DSP_H
#define TINYET_DEPTHWISE_CHW_DSP_H

#include "tinyet_tile_dsp.h"

/* Sizes in pixels, steps in bytes; literals. */
typedef struct {
  int32_t batch, channels, group, multiplier; /* multiplier: output channels of one of the input */
  int32_t in_u, in_v, in_step_u, in_step_v;
  int32_t out_u, out_v, out_step_u, out_step_v;
  int32_t pairs; /* whether the output is as tinyet_conv2d_s8_w16_nhw2c2_2x2_dsp takes its input; along the width, that is even */
  int32_t kernel_u, kernel_v, stride_u, stride_v, dilation_u, dilation_v;
  int32_t pad_u, pad_v; /* before the first pixel */
  int32_t zero_point, out_zero_point;
  int32_t part;  /* values, an even number; dilation_u of them are a row of a plane */
  int32_t apart; /* outputs so far apart along u look at the same part, `between` values from each other */
  int32_t between;
  int32_t tile;     /* output rows */
  int32_t by_tiles; /* all groups of a tile one after another, so that the output may lie over the input's first rows */
} tinyet_depthwise_shape_dsp;

/* Words of a plane's row. */
TINYET_DSP_INLINE int32_t tinyet_row_words_dsp(const tinyet_depthwise_shape_dsp s) { return s.dilation_u * s.part / 2; }

/* Input rows of a tile. */
TINYET_DSP_INLINE int32_t tinyet_tile_rows_dsp(const tinyet_depthwise_shape_dsp s) {
  return (s.tile - 1) * s.stride_v + (s.kernel_v - 1) * s.dilation_v + 1;
}

/* The offset of the rounding (tinyet_dsp.h) of a channel whose output depends on its sum: known by the shift. */
TINYET_DSP_INLINE int32_t tinyet_offset_dsp(int32_t shift, int32_t zero_point, const tinyet_rounding_dsp rounding) {
  if (rounding.form == TINYET_DSP_ONE_SIDED) {
    return (1 << (rounding.exponent - 1)) + zero_point * (1 << rounding.exponent) + (1 << (shift - 2));
  }
  return rounding.form == TINYET_DSP_TWO_SIDED ? (2 * zero_point + 1) * (1 << (shift - 1)) : zero_point;
}

/* Bytes from pixel to pixel: one of the steps, the other one is that of a row of them. */
TINYET_DSP_INLINE int32_t tinyet_pixel_stride_dsp(int32_t step_u, int32_t step_v) {
  return step_u < step_v ? step_u : step_v;
}

/* Where the outputs of a channel begin. */
TINYET_DSP_INLINE int32_t tinyet_out_byte_dsp(int32_t channel, const tinyet_depthwise_shape_dsp s) {
  return s.pairs ? (channel / 4 * 2 + channel % 2) * 8 + channel / 2 % 2 * 2 : channel;
}

/* The channels of a group, of one pixel. */
TINYET_DSP_INLINE uint32_t tinyet_load_group_dsp(const int8_t *from, const int32_t group) {
  return group == 4 ? tinyet_load_dsp(from) : tinyet_load_int8x2_dsp(from);
}

/* Two pixels into a word of each plane. */
TINYET_DSP_INLINE void tinyet_plane_word_dsp(uint32_t *to, uint32_t first, uint32_t second, const int32_t plane,
                                             const int32_t group) {
  const uint32_t low = tinyet_low_int16x2_dsp(first, second);
  to[0] = tinyet_even_bytes_dsp(low);
  to[plane] = tinyet_odd_bytes_dsp(low);
  if (group == 4) {
    const uint32_t high = tinyet_high_int16x2_dsp(first, second);
    to[2 * plane] = tinyet_even_bytes_dsp(high);
    to[3 * plane] = tinyet_odd_bytes_dsp(high);
  }
}

/* `words` words of each plane: two pixels each, `step` bytes apart. */
TINYET_DSP_INLINE void tinyet_plane_words_dsp(uint32_t *to, const int8_t *from, const int32_t words, const int32_t step,
                                              const int32_t plane, const int32_t group) {
  for (int32_t i = 0; i < words; i++) {
    tinyet_plane_word_dsp(to++, tinyet_load_group_dsp(from, group), tinyet_load_group_dsp(from + step, group), plane,
                          group);
    from += 2 * step;
  }
}

/* `count` pixels, `step` bytes apart, into the values from `first` on of a row; what shares a word with them is blank. */
TINYET_DSP_INLINE void tinyet_plane_values_dsp(uint32_t *to, const int8_t *from, int32_t first, int32_t count,
                                               const int32_t step, const int32_t plane, const int32_t group,
                                               const uint32_t blank) {
  to += first / 2;
  if (first % 2 != 0) {
    tinyet_plane_word_dsp(to++, blank, tinyet_load_group_dsp(from, group), plane, group);
    from += step;
    count--;
  }
  if (count > 1) {
    tinyet_plane_words_dsp(to, from, count / 2, step, plane, group);
  }
  if (count % 2 != 0) {
    tinyet_plane_word_dsp(to + count / 2, tinyet_load_group_dsp(from + (count - 1) * step, group), blank, plane, group);
  }
}

/* A printed function (tinyet/tiles) that widens rows of the image: where the first one is in the first plane, and where they end
 * there. */
typedef void (*tinyet_planes_function_dsp)(const int8_t *input, uint32_t *planes, const uint32_t *end);

typedef struct {
  int32_t first, count; /* the value of a plane's row that is the first pixel's, and pixels */
  int32_t step, row_step; /* bytes from pixel to pixel, and from row to row */
  int32_t channels;
  int32_t row_words, plane_words;
} tinyet_planes_shape_dsp;

/* What it computes, in C. */
TINYET_DSP_INLINE void tinyet_planes_dsp(const int8_t *input, uint32_t *planes, const uint32_t *end,
                                         const tinyet_planes_shape_dsp s) {
  for (; planes != end; planes += s.row_words, input += s.row_step) {
    for (int32_t i = 0; i < s.count; i++) {
      const int32_t at = s.first + i;
      for (int32_t k = 0; k < s.channels; k++) {
        uint32_t *const word = planes + k * s.plane_words + at / 2;
        const uint32_t value = (uint32_t)input[i * s.step + k] & 0xffffu;
        *word = at % 2 != 0 ? ((*word & 0xffffu) | (value << 16)) : ((*word & 0xffff0000u) | value);
      }
    }
  }
}

/* One input row of a group into the row `to` of its planes, part by part; what is outside the image stays. */
TINYET_DSP_INLINE void tinyet_plane_row_dsp(uint32_t *to, const int8_t *from, const int32_t plane, const uint32_t blank,
                                            const tinyet_depthwise_shape_dsp s) {
  const int32_t d = s.dilation_u, reach = (s.out_u - 1) * s.stride_u + (s.kernel_u - 1) * d + 1;
  const int32_t end = reach < s.pad_u + s.in_u ? reach : s.pad_u + s.in_u;
  for (int32_t part = 0; part < d; part++) {
    const int32_t first = s.pad_u > part ? (s.pad_u - part + d - 1) / d : 0;
    const int32_t count = (end - part + d - 1) / d - first;
    if (count > 0) {
      tinyet_plane_values_dsp(to + part * s.part / 2, from + (part + first * d - s.pad_u) * s.in_step_u, first, count,
                              d * s.in_step_u, plane, s.group, blank);
    }
  }
}

/* Both halves of all planes, once: what is never in the image. */
TINYET_DSP_INLINE void tinyet_blank_planes_dsp(uint32_t *planes, const tinyet_depthwise_shape_dsp s) {
  const uint32_t blank = tinyet_both_dsp(s.zero_point);
  for (int32_t i = 0; i < s.group * tinyet_tile_rows_dsp(s) * tinyet_row_words_dsp(s); i++) {
    planes[i] = blank;
  }
}

typedef struct {
  uint32_t words[4];
} tinyet_four_words_dsp;

/* `count` words, to a place before them. */
TINYET_DSP_INLINE void tinyet_move_words_dsp(uint32_t *to, const uint32_t *from, const int32_t count) {
  for (int32_t i = 0; i < count / 4; i++) {
    tinyet_four_words_dsp four;
    memcpy(&four, from + 4 * i, sizeof four);
    memcpy(to + 4 * i, &four, sizeof four);
  }
  for (int32_t i = count / 4 * 4; i < count; i++) {
    to[i] = from[i];
  }
}

/* The tile of output rows from `top` on, of the group of channels at `input`. fill: where dilation_u is 1; else NULL. */
TINYET_DSP_INLINE void tinyet_fill_planes_dsp(uint32_t *planes, const int8_t *input, int32_t top,
                                              const tinyet_planes_function_dsp fill,
                                              const tinyet_depthwise_shape_dsp s) {
  const int32_t row = tinyet_row_words_dsp(s), rows = tinyet_tile_rows_dsp(s), plane = rows * row;
  const int32_t kept = s.by_tiles ? 0 : rows - s.tile * s.stride_v; /* rows that the next tile needs, too */
  const uint32_t blank = tinyet_both_dsp(s.zero_point), blank_pixel = ((uint32_t)s.zero_point & 0xffu) * 0x01010101u;
  const int32_t above = s.pad_v - top * s.stride_v; /* rows before the image's first */
  int32_t r = 0;
  if (s.tile < s.out_v && kept > 0 && top > 0) {
    for (int32_t k = 0; k < s.group; k++) {
      TINYET_DSP_UNKNOWN(k);
      tinyet_move_words_dsp(planes + k * plane, planes + k * plane + (rows - kept) * row, kept * row);
    }
    r = kept;
  }
  while (r < rows) {
    uint32_t *const to = planes + r * row;
    if ((uint32_t)(r - above) < (uint32_t)s.in_v) {
      const int32_t last = above + s.in_v, end = fill != NULL ? (last < rows ? last : rows) : r + 1;
      const int8_t *const from = input + (r - above) * s.in_step_v;
      if (fill != NULL) {
        fill(from, to, planes + end * row);
      } else {
        tinyet_plane_row_dsp(to, from, plane, blank_pixel, s);
      }
      r = end;
      continue;
    }
    if (s.tile < s.out_v) {
      for (int32_t i = 0; i < row; i++) {
#pragma GCC unroll 4
        for (int32_t k = 0; k < s.group; k++) {
          to[k * plane + i] = blank;
        }
      }
    }
    r++;
  }
}

/* The output rows of the tile at `top`. */
TINYET_DSP_INLINE int32_t tinyet_rows_left_dsp(int32_t top, const tinyet_depthwise_shape_dsp s) {
  const int32_t left = s.out_v - top;
  return s.out_v % s.tile == 0 || left > s.tile ? s.tile : left;
}

/* The group of channels behind that at `channel`: the last one overlaps the one before where it has fewer. */
TINYET_DSP_INLINE int32_t tinyet_next_group_dsp(int32_t channel, const tinyet_depthwise_shape_dsp s) {
  const int32_t next = channel + s.group;
  return s.channels % s.group != 0 && next < s.channels && next > s.channels - s.group ? s.channels - s.group : next;
}

/* For every tile from row `top` on of every group of channels from `channel` on, the statement `tile_of_group`. */
#define TINYET_DSP_OVER_TILES(s, tile_of_group)                                                        \
  if ((s).by_tiles) {                                                                                  \
    for (int32_t top = 0; top < (s).out_v; top += (s).tile) {                                          \
      for (int32_t channel = 0; channel < (s).channels; channel = tinyet_next_group_dsp(channel, s)) { \
        tile_of_group;                                                                                 \
      }                                                                                                \
    }                                                                                                  \
  } else {                                                                                             \
    for (int32_t channel = 0; channel < (s).channels; channel = tinyet_next_group_dsp(channel, s)) {   \
      for (int32_t top = 0; top < (s).out_v; top += (s).tile) {                                        \
        tile_of_group;                                                                                 \
      }                                                                                                \
    }                                                                                                  \
  }

#endif
