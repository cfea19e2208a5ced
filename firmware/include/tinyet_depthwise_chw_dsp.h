/* SPDX-License-Identifier: Apache-2.0 */
/* Planes of int16 (chw: channel by channel) for the depthwise kernels of cores with DSP instructions: see tinyet_dsp.h.
 *
 * Two or four channels at a time (a group) are taken out of the image, and widened if they are int8, into as many planes in
 * scratch. Along the
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
  int32_t size; /* bytes of a value: 1, or 2 in groups of two channels, whose zero points are 0 */
  int32_t batch, channels, group, multiplier; /* multiplier: output channels of one of the input */
  int32_t in_u, in_v, in_step_u, in_step_v;
  int32_t out_u, out_v, out_step_u, out_step_v;
  int32_t pairs; /* whether the output is as tinyet_conv2d_s8_w16_nhw2c2_2x2_dsp takes its input; along the width, that is even */
  int32_t kernel_u, kernel_v, stride_u, stride_v, dilation_u, dilation_v;
  int32_t pad_u, pad_v; /* before the first pixel */
  int32_t zero_point, out_zero_point;
  int32_t part;  /* values, an even number; dilation_u of them are a row of a plane */
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
  return s.pairs ? (channel / 4 * 2 + channel % 2) * 8 + channel / 2 % 2 * 2 : channel * s.size;
}

/* Words of a plane. */
TINYET_DSP_INLINE int32_t tinyet_plane_words_dsp(const tinyet_depthwise_shape_dsp s) {
  return tinyet_tile_rows_dsp(s) * tinyet_row_words_dsp(s);
}

/* A printed function (tinyet/tiles) that takes rows out of the image: where the first one is in the first plane, and where they
 * end there. */
typedef void (*tinyet_planes_function_dsp)(const void *input, uint32_t *planes, const uint32_t *end);

typedef struct {
  int32_t first, count; /* the value of a plane's row that is the first pixel's, and pixels */
  int32_t step, row_step; /* bytes from pixel to pixel, and from row to row */
  int32_t channels;
  int32_t row_words, plane_words;
  int32_t dilation, part; /* parts of a row, and the values of each */
} tinyet_planes_shape_dsp;

/* Pixel i of a row, of channel k. */
TINYET_DSP_INLINE void tinyet_put_pixel_dsp(uint32_t *row, int32_t i, int32_t k, int32_t value,
                                            const tinyet_planes_shape_dsp s) {
  const int32_t place = s.first + i, at = place % s.dilation * s.part + place / s.dilation;
  uint32_t *const word = row + k * s.plane_words + at / 2;
  const uint32_t half = (uint32_t)value & 0xffffu;
  *word = at % 2 != 0 ? ((*word & 0xffffu) | (half << 16)) : ((*word & 0xffff0000u) | half);
}

/* What it computes, in C. */
TINYET_DSP_INLINE void tinyet_planes_dsp(const int8_t *input, uint32_t *planes, const uint32_t *end,
                                         const tinyet_planes_shape_dsp s) {
  for (; planes != end; planes += s.row_words, input += s.row_step) {
    for (int32_t i = 0; i < s.count; i++) {
      for (int32_t k = 0; k < s.channels; k++) {
        tinyet_put_pixel_dsp(planes, i, k, input[i * s.step + k], s);
      }
    }
  }
}

/* The same of int16. */
TINYET_DSP_INLINE void tinyet_planes_s16_dsp(const int16_t *input, uint32_t *planes, const uint32_t *end,
                                             const tinyet_planes_shape_dsp s) {
  for (; planes != end; planes += s.row_words, input += s.row_step / 2) {
    for (int32_t i = 0; i < s.count; i++) {
      for (int32_t k = 0; k < s.channels; k++) {
        tinyet_put_pixel_dsp(planes, i, k, input[i * (s.step / 2) + k], s);
      }
    }
  }
}

/* Both halves of all planes, once: what is never in the image. */
TINYET_DSP_INLINE void tinyet_blank_planes_dsp(uint32_t *planes, const tinyet_depthwise_shape_dsp s) {
  const uint32_t blank = tinyet_both_dsp(s.zero_point);
  for (int32_t i = 0; i < s.group * tinyet_plane_words_dsp(s); i++) {
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

/* The tile of output rows from `top` on, of the group of channels at `input`. fill: NULL where no output sees a pixel. */
TINYET_DSP_INLINE void tinyet_fill_planes_dsp(uint32_t *planes, const int8_t *input, int32_t top,
                                              const tinyet_planes_function_dsp fill,
                                              const tinyet_depthwise_shape_dsp s) {
  const int32_t row = tinyet_row_words_dsp(s), rows = tinyet_tile_rows_dsp(s), plane = rows * row;
  const int32_t kept = s.by_tiles ? 0 : rows - s.tile * s.stride_v; /* rows that the next tile needs, too */
  const uint32_t blank = tinyet_both_dsp(s.zero_point);
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
      const int32_t last = above + s.in_v, end = last < rows ? last : rows;
      if (fill != NULL) {
        fill(input + (r - above) * s.in_step_v, to, planes + end * row);
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
