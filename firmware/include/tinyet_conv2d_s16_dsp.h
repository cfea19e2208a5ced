/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised convolutions of one group with int16 activations for cores with DSP instructions, four pixels at a time, whose products,
 * rounding and stores are a printed tile (tinyet/tiles, tinyet_tile_lanes_s16_dsp.h): what is around it.
 *
 * Sums are in 32 bits where the weights prove that these are enough. Where they are not, the lanes are divided into `parts`
 * with sums of their own, and what is added up, in 64 bits, is their products with the multiplier.
 *
 * The weight stream is that of the tile, of two channels after another, and of a last one alone where they are odd in number; in
 * parts, the multipliers of both come first, then the stream of each part, of which the first has the bias. */
#ifndef TINYET_CONV2D_S16_DSP_H
#define TINYET_CONV2D_S16_DSP_H

#include "tinyet_conv2d_dsp.h"
#include "tinyet_tile_lanes_s16_dsp.h"

/* The printed functions of a layer; literals. */
typedef struct {
  tinyet_tile_function_dsp two, last; /* channels; in parts, their sums */
  tinyet_columns_function_dsp see;    /* a row of the image; NULL where four pixels always reach out of it or lie in two rows */
  int32_t parts;
  int32_t words, last_words; /* of the stream of two channels and of the last one; of each part */
  int32_t part_words;        /* of inputs, of each part */
  int32_t clamp;             /* whether the tiles leave out bounds */
} tinyet_tiles_s16_dsp;

/* Of one or two channels of four pixels, in parts. */
TINYET_DSP_INLINE const int32_t *tinyet_parts_of_channels_s16_dsp(const int32_t *w, const uint32_t *pixels, int16_t *out,
                                                                  const int32_t channels, const int32_t words,
                                                                  const tinyet_tile_function_dsp tile, const int32_t step,
                                                                  const tinyet_tiles_s16_dsp tiles,
                                                                  const tinyet_rounding_s16_dsp rounding) {
  const int32_t *const multipliers = w;
  int64_t totals[8];
  for (int32_t k = 0; k < 4 * channels; k++) {
    totals[k] = tinyet_half_s16_dsp(rounding);
  }
  w += channels;
  for (int32_t part = 0; part < tiles.parts; part++, w += words) {
    int32_t sums[8];
    TINYET_DSP_UNKNOWN(part);
    tile(w, pixels + part * tiles.part_words, sums, sums + channels);
    for (int32_t k = 0; k < 4 * channels; k++) {
      totals[k] += (int64_t)sums[k] * multipliers[k % channels];
    }
  }
  for (int32_t k = 0; k < 4 * channels; k++) {
    tinyet_store_s16_dsp(out + k / channels * step + k % channels,
                         tinyet_clamp_s16_dsp((int32_t)(totals[k] >> 32), rounding));
  }
  return w;
}

/* All channels of four pixels. */
TINYET_DSP_INLINE void tinyet_four_pixels_s16_dsp(const int32_t *w, const uint32_t *pixels, int16_t *out, const int32_t out_c,
                                                  const tinyet_tiles_s16_dsp tiles, const tinyet_rounding_s16_dsp rounding) {
  const int32_t whole = out_c & ~1;
  if (tiles.parts == 1) {
    if (whole != 0) {
      tiles.two(w, pixels, out, out + whole);
    }
    if ((out_c & 1) != 0) {
      tiles.last(w + whole / 2 * tiles.words, pixels, out + whole, out + out_c);
    }
    return;
  }
  for (const int16_t *const end = out + whole; out != end; out += 2) {
    w = tinyet_parts_of_channels_s16_dsp(w, pixels, out, 2, tiles.words, tiles.two, out_c, tiles, rounding);
  }
  if ((out_c & 1) != 0) {
    (void)tinyet_parts_of_channels_s16_dsp(w, pixels, out, 1, tiles.last_words, tiles.last, out_c, tiles, rounding);
  }
}

/* What the tiles leave out, of so many outputs before `end`. */
TINYET_DSP_INLINE void tinyet_clamp_outputs_s16_dsp(int16_t *end, const int32_t count, const tinyet_tiles_s16_dsp tiles,
                                                    const tinyet_rounding_s16_dsp rounding) {
  if (tiles.clamp) {
    for (int16_t *value = end - count; value != end; value++) {
      *value = (int16_t)tinyet_clamp(*value, rounding.low, rounding.high);
    }
  }
}

/* Whether no kernel reaches over the upper or lower edge of the image, and over the left or right one. */
TINYET_DSP_INLINE int tinyet_rows_inside_s16_dsp(const tinyet_conv2d_shape_dsp s) {
  return s.pad_top == 0 && (s.out_h - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h < s.in_h;
}
TINYET_DSP_INLINE int tinyet_columns_inside_s16_dsp(const tinyet_conv2d_shape_dsp s) {
  return s.pad_left == 0 && (s.out_w - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w < s.in_w;
}

/* Columns shared by the four pixels, in lanes of neighbouring channels: needs out_w >= 4, and stride_w or dilation_w of 1. Where
 * out_w is no multiple of 4, the last four pixels of a row overlap those before. scratch: 4 * lanes * width bytes. */
TINYET_DSP_INLINE void tinyet_conv2d_s16_direct_4x2_dsp(const int16_t *input, int16_t *output, void *scratch,
                                                        const int32_t *weights, const tinyet_conv2d_shape_dsp s,
                                                        const tinyet_tiles_s16_dsp tiles,
                                                        const tinyet_rounding_s16_dsp rounding) {
  const int32_t pairs = (s.in_c + 1) / 2;
  const int32_t reach = (s.kernel_w - 1) * s.dilation_w;
  const int32_t run = reach / s.stride_w + 4;
  const int32_t runs = s.stride_w < reach + 1 ? s.stride_w : reach + 1;
  const int32_t width = runs * run;
  const int rows_inside = tinyet_rows_inside_s16_dsp(s), columns_inside = tinyet_columns_inside_s16_dsp(s);
  uint32_t *const pixels = (uint32_t *)scratch;
  for (int32_t n = 0; n < s.batch; n++) {
    for (int32_t oy = 0; oy < s.out_h; oy++) {
      for (int32_t ox = 0; ox < s.out_w; ox += 4) {
        if (s.out_w % 4 != 0 && ox > s.out_w - 4) {
          ox = s.out_w - 4;
        }
        uint32_t *to = pixels;
        const int32_t left = ox * s.stride_w - s.pad_left;
        const int whole = tiles.see && (columns_inside || (left >= 0 && left + reach + 3 * s.stride_w < s.in_w));
        for (int32_t ky = 0; ky < s.kernel_h; ky++) {
          const int32_t y = oy * s.stride_h - s.pad_top + ky * s.dilation_h;
          if (whole) {
            if (rows_inside || (uint32_t)y < (uint32_t)s.in_h) {
              tiles.see(input + (y * s.in_w + left) * s.in_c, to);
            } else {
              tinyet_fill_dsp(to, 0, pairs * width, 1);
            }
            to += pairs * width;
            continue;
          }
          for (int32_t f = 0; f < runs; f++) {
            const int32_t used = (reach - f) / s.stride_w + 4;
            for (int32_t i = 0; i < used; i++) {
              const int32_t x = left + f + i * s.stride_w;
              if ((uint32_t)y < (uint32_t)s.in_h && (uint32_t)x < (uint32_t)s.in_w) {
                tinyet_put_int16x2_dsp(to + f * run + i, input + (y * s.in_w + x) * s.in_c, s.in_c, width);
              } else {
                tinyet_fill_dsp(to + f * run + i, 0, pairs, width);
              }
            }
          }
          to += pairs * width;
        }
        tinyet_four_pixels_s16_dsp(weights, pixels, output + (oy * s.out_w + ox) * s.out_c, s.out_c, tiles, rounding);
      }
    }
    input += s.in_h * s.in_w * s.in_c;
    output += s.out_h * s.out_w * s.out_c;
  }
  tinyet_clamp_outputs_s16_dsp(output, s.batch * s.out_h * s.out_w * s.out_c, tiles, rounding);
}

/* A kernel row that lies partly outside the image. */
TINYET_DSP_INLINE void tinyet_edge_s16_dsp(int16_t *to, const int16_t *image_row, const int32_t left,
                                           const tinyet_conv2d_shape_dsp s) {
  const int32_t right = left + s.kernel_w;
  const int32_t first = left < 0 ? 0 : left, end = right > s.in_w ? s.in_w : right;
  memset(to, 0, (size_t)(2 * s.kernel_w * s.in_c));
  if (first < end) {
    memcpy(to + (first - left) * s.in_c, image_row + first * s.in_c, (size_t)(2 * (end - first) * s.in_c));
  }
}

/* All that the kernel sees of one pixel, into every fourth word. */
TINYET_DSP_INLINE void tinyet_im2col_s16_dsp(uint32_t *to, const int16_t *input, const int32_t top, const int32_t left,
                                             int16_t *edge, const tinyet_conv2d_shape_dsp s) {
  const int32_t together = s.dilation_w == 1 ? s.kernel_w : 1; /* taps */
  const int32_t pairs = (together * s.in_c + 1) / 2, row_pairs = s.kernel_w / together * pairs;
  for (int32_t ky = 0; ky < s.kernel_h; ky++, to += 4 * row_pairs) {
    const int32_t y = top + ky * s.dilation_h;
    if ((uint32_t)y >= (uint32_t)s.in_h) {
      tinyet_fill_dsp(to, 0, row_pairs, 4);
      continue;
    }
    const int16_t *const row = input + y * s.in_w * s.in_c;
    if (s.dilation_w == 1) {
      const int16_t *from = edge;
      if (left < 0 || left + s.kernel_w > s.in_w) {
        tinyet_edge_s16_dsp(edge, row, left, s);
      } else {
        from = row + left * s.in_c;
      }
      tinyet_put_int16x2_dsp(to, from, s.kernel_w * s.in_c, 4);
      continue;
    }
    for (int32_t kx = 0; kx < s.kernel_w; kx++) {
      const int32_t x = left + kx * s.dilation_w;
      if ((uint32_t)x < (uint32_t)s.in_w) {
        tinyet_put_int16x2_dsp(to + 4 * pairs * kx, row + x * s.in_c, s.in_c, 4);
      } else {
        tinyet_fill_dsp(to + 4 * pairs * kx, 0, pairs, 4);
      }
    }
  }
}

/* Any four pixels that follow each other in the output; needs four of them. The lanes of a kernel row are pairs of its kernel_w * in_c
 * neighbours (with pixels in_c apart, or a kernel_w of 1); where it is dilated, pairs of channels, tap by tap. scratch: 16 bytes a
 * lane. */
TINYET_DSP_INLINE void tinyet_conv2d_s16_im2col_4x2_dsp(const int16_t *input, int16_t *output, void *scratch,
                                                        const int32_t *weights, const tinyet_conv2d_shape_dsp s,
                                                        const tinyet_tiles_s16_dsp tiles,
                                                        const tinyet_rounding_s16_dsp rounding) {
  const int32_t together = s.dilation_w == 1 ? s.kernel_w : 1; /* taps */
  const int32_t row_pairs = s.kernel_w / together * ((together * s.in_c + 1) / 2), count = s.out_h * s.out_w;
  const int rows_inside = tinyet_rows_inside_s16_dsp(s), columns_inside = tinyet_columns_inside_s16_dsp(s);
  uint32_t *const pixels = (uint32_t *)scratch;
  int16_t *const edge = (int16_t *)(pixels + 4 * s.kernel_h * row_pairs);
  for (int32_t n = 0; n < s.batch; n++) {
    for (int32_t first = 0; first < count; first += 4) {
      if (count % 4 != 0 && first > count - 4) {
        first = count - 4;
      }
      const int32_t top = first / s.out_w * s.stride_h - s.pad_top, left = first % s.out_w * s.stride_w - s.pad_left;
      if (tiles.see && (s.out_h == 1 || s.out_w % 4 == 0 || first % s.out_w + 3 < s.out_w) &&
          (columns_inside || (left >= 0 && left + 3 * s.stride_w + s.kernel_w <= s.in_w))) {
        uint32_t *to = pixels;
        for (int32_t ky = 0; ky < s.kernel_h; ky++, to += 4 * row_pairs) {
          const int32_t y = top + ky * s.dilation_h;
          if (rows_inside || (uint32_t)y < (uint32_t)s.in_h) {
            tiles.see(input + (y * s.in_w + left) * s.in_c, to);
          } else {
            tinyet_fill_dsp(to, 0, 4 * row_pairs, 1);
          }
        }
      } else {
        for (int32_t j = 0; j < 4; j++) {
          tinyet_im2col_s16_dsp(pixels + j, input, (first + j) / s.out_w * s.stride_h - s.pad_top,
                                (first + j) % s.out_w * s.stride_w - s.pad_left, edge, s);
        }
      }
      tinyet_four_pixels_s16_dsp(weights, pixels, output + first * s.out_c, s.out_c, tiles, rounding);
    }
    input += s.in_h * s.in_w * s.in_c;
    output += count * s.out_c;
  }
  tinyet_clamp_outputs_s16_dsp(output, s.batch * count * s.out_c, tiles, rounding);
}

#endif
