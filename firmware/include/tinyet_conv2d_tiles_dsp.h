/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised int8 convolutions of one group whose products, rounding and stores are a printed tile (tinyet/tiles), and its inputs
 * what a printed function gathers of two pixels, or of one: what is around both.
 *
 * Inputs lie in scratch as pairs of neighbouring bytes of a kernel row (tinyet_widen_dsp), where it is dilated of each tap;
 * for each pair a word of both pixels. Where such bytes are odd in number, the last one is paired with that of the next. The
 * weight stream is that of the tile (tinyet_tile_dsp.h); the last group of channels overlaps the one before where they are no
 * multiple of a group. Where windows reach over an edge of the image, they lie in scratch with their padding, or rows of the image do. */
#ifndef TINYET_CONV2D_TILES_DSP_H
#define TINYET_CONV2D_TILES_DSP_H

#include "tinyet_conv2d_dsp.h"
#include "tinyet_tile_dsp.h"

/* A printed function (tinyet/tiles) that widens what the windows of two pixels see, or of one: where they begin, where the
 * words go, and bytes from row to row. */
typedef void (*tinyet_patches_function_dsp)(const int8_t *first, const int8_t *second, uint32_t *to, int32_t row_step);

typedef struct {
  int32_t pixels;
  int32_t rows, taps, values; /* of a window; of a tap */
  int32_t row_step, tap_step; /* bytes from one to the next; a row_step of 0: what the call says */
  int32_t filled;             /* words of each pixel behind all others, zero */
} tinyet_patches_shape_dsp;

/* What it computes, in C. */
TINYET_DSP_INLINE void tinyet_patches_dsp(const int8_t *first, const int8_t *second, uint32_t *to, const int32_t row_step,
                                          const tinyet_patches_shape_dsp s) {
  const int32_t rest = s.values & 3, whole = s.values - rest, apart = s.row_step != 0 ? s.row_step : row_step;
  for (int32_t m = 0; m < s.pixels; m++) {
    const int8_t *const from = m == 0 ? first : second;
    uint32_t *word = to + m;
    int8_t odd = 0;
    int waits = 0;
    for (int32_t tap = 0; tap < s.rows * s.taps; tap++) {
      const int8_t *const values = from + tap / s.taps * apart + tap % s.taps * s.tap_step;
      const int8_t last = values[s.values - 1];
      tinyet_widen_dsp(word, values, whole + (rest & 2), s.pixels);
      word += (whole / 2 + rest / 2) * s.pixels;
      if ((rest & 1) != 0 && waits) {
        *word = tinyet_low_int16x2_dsp((uint32_t)(int32_t)odd, (uint32_t)(int32_t)last);
        word += s.pixels;
      }
      odd = last;
      waits ^= rest & 1;
    }
    if (waits) {
      *word = (uint32_t)(int32_t)odd; /* the upper half meets a weight of zero */
      word += s.pixels;
    }
    tinyet_fill_dsp(word, 0, s.filled, s.pixels);
  }
}

/* Rows and columns that a kernel spans. */
TINYET_DSP_INLINE int32_t tinyet_span_h_dsp(const tinyet_conv2d_shape_dsp s) { return (s.kernel_h - 1) * s.dilation_h + 1; }
TINYET_DSP_INLINE int32_t tinyet_span_w_dsp(const tinyet_conv2d_shape_dsp s) { return (s.kernel_w - 1) * s.dilation_w + 1; }

/* Whether no kernel reaches over an edge of the image. */
TINYET_DSP_INLINE int tinyet_inside_dsp(const tinyet_conv2d_shape_dsp s) {
  return s.pad_top == 0 && (s.out_h - 1) * s.stride_h + tinyet_span_h_dsp(s) <= s.in_h && s.pad_left == 0 &&
         (s.out_w - 1) * s.stride_w + tinyet_span_w_dsp(s) <= s.in_w;
}

/* What lies in scratch where windows reach out; literals. Bands: so many rows of the image with their padding, all that the windows
 * of `outputs` output rows see. Without (0), the windows of two pixels, where one reaches out: what both see of a row together, or
 * one behind the other where they are in two output rows. */
typedef struct {
  int32_t outputs, rows, columns; /* columns: from row to row of either */
} tinyet_band_dsp;

/* Bytes, eight words at a time, and by words. */
TINYET_DSP_INLINE void tinyet_copy_dsp(int8_t *to, const int8_t *from, const int32_t count) {
  int32_t left = count;
#pragma GCC unroll 1 /* once, whatever is known of the count */
  for (; left >= 32; left -= 32, from += 32, to += 32) {
    uint32_t words[8];
#pragma GCC unroll 8
    for (int32_t i = 0; i < 8; i++) {
      words[i] = tinyet_load_dsp(from + 4 * i);
    }
#pragma GCC unroll 8
    for (int32_t i = 0; i < 8; i++) {
      memcpy(to + 4 * i, &words[i], 4);
    }
  }
#pragma GCC unroll 1
  for (; left >= 4; left -= 4, from += 4, to += 4) {
    const uint32_t word = tinyet_load_dsp(from);
    memcpy(to, &word, 4);
  }
#pragma GCC unroll 1
  for (; left > 0; left--) {
    *to++ = *from++;
  }
}

/* So many columns of so many rows, `apart` from each other, of the image with its padding, to rows of `pitch` columns. */
TINYET_DSP_INLINE void tinyet_padded_dsp(int8_t *to, const int32_t pitch, const int8_t *input, const int32_t top,
                                         const int32_t left, const int32_t rows, const int32_t apart, const int32_t columns,
                                         const tinyet_conv2d_shape_dsp s) {
  const int32_t first = left < 0 ? -left : 0, end = s.in_w - left < columns ? s.in_w - left : columns;
  for (int32_t y = top; y != top + rows * apart; y += apart, to += pitch * s.in_c) {
    if ((uint32_t)y >= (uint32_t)s.in_h || first >= end) {
      memset(to, s.zero_point, (size_t)(columns * s.in_c));
      continue;
    }
    const int8_t *const from = input + (y * s.in_w + left + first) * s.in_pixel_stride;
    for (int32_t i = 0; i < first * s.in_c; i++) {
      to[i] = (int8_t)s.zero_point;
    }
    if (s.in_pixel_stride == s.in_c) {
      tinyet_copy_dsp(to + first * s.in_c, from, (end - first) * s.in_c);
    } else {
      for (int32_t i = first; i < end; i++) {
        tinyet_copy_dsp(to + i * s.in_c, from + (i - first) * s.in_pixel_stride, s.in_c);
      }
    }
    for (int32_t i = end * s.in_c; i < columns * s.in_c; i++) {
      to[i] = (int8_t)s.zero_point;
    }
  }
}

/* The weights as they are in scratch, `to`. */
TINYET_DSP_INLINE const int32_t *tinyet_copied_weights_dsp(int32_t *to, const int32_t *weights, const int32_t words) {
  const int32_t *const end = weights + words / 4 * 4;
  int32_t *at = to;
  for (; weights != end; weights += 4, at += 4) {
    const int32_t a = weights[0], b = weights[1], c = weights[2], d = weights[3];
    at[0] = a;
    at[1] = b;
    at[2] = c;
    at[3] = d;
  }
  for (int32_t i = 0; i < words % 4; i++) {
    at[i] = weights[i];
  }
  return to;
}

/* The printed functions of a layer; literals. */
typedef struct {
  tinyet_tile_function_dsp several, one; /* pixels; without one, the last ones overlap those before where some are left */
  tinyet_tile_function_dsp last;         /* channels that are no whole group; without, they overlap those before */
  tinyet_patches_function_dsp see_two, see_one;
  int32_t pixels;                        /* of `several`: 2 or 4 */
  int32_t channels, words;               /* of a group: how many, and words of its weights */
  int32_t pairs;                         /* of input values, those that fill up included */
} tinyet_tiles_dsp;

/* The outputs of the pixels whose inputs are in scratch. */
TINYET_DSP_INLINE void tinyet_outputs_of_tile_dsp(const tinyet_tile_function_dsp tile, const int32_t *weights,
                                                  const uint32_t *pixels, int8_t *out, const tinyet_tiles_dsp tiles,
                                                  const tinyet_conv2d_shape_dsp s) {
  const int32_t whole = s.out_c / tiles.channels, rest = s.out_c % tiles.channels;
  if (whole != 0) {
    tile(weights, pixels, out, out + whole * tiles.channels);
  }
  if (rest != 0) {
    int8_t *const end = out + s.out_c;
    (tiles.last ? tiles.last : tile)(weights + whole * tiles.words, pixels, end - (tiles.last ? rest : tiles.channels), end);
  }
}

/* What the rounding leaves out, of all pixels before `end`. */
TINYET_DSP_INLINE void tinyet_clamp_pixels_dsp(int8_t *end, const tinyet_conv2d_shape_dsp s, const tinyet_rounding_dsp rounding) {
  if (rounding.low > -128 || rounding.high < 127) {
    const int32_t pixels = s.batch * s.out_h * s.out_w, dense = s.out_pixel_stride == s.out_c;
    const int32_t run = dense ? pixels * s.out_c : s.out_c; /* bytes without a gap */
    for (int8_t *first = end - pixels * s.out_pixel_stride; first != end; first += dense ? run : s.out_pixel_stride) {
      for (int8_t *value = first; value != first + run; value++) {
        *value = (int8_t)tinyet_clamp(*value, rounding.low, rounding.high);
      }
    }
  }
}

/* The taps of one pixel's row, dense. */
TINYET_DSP_INLINE void tinyet_padded_taps_dsp(int8_t *to, const int8_t *input, const int32_t top, const int32_t left,
                                              const tinyet_conv2d_shape_dsp s) {
  for (int32_t tap = 0; tap < s.kernel_w; tap++) {
    tinyet_padded_dsp(to + tap * s.in_c, 1, input, top, left + tap * s.dilation_w, 1, 1, 1, s);
  }
}

/* Any convolution of as many output pixels as a tile has at least, any that follow each other in the output at a time; what two see
 * is gathered at once. scratch: 4 bytes a pair of input values and pixel, and what there is of bands or windows. */
TINYET_DSP_INLINE void tinyet_conv2d_tiles_dsp(const int8_t *input, int8_t *output, void *scratch, const int32_t *weights,
                                               const tinyet_conv2d_shape_dsp s, const tinyet_rounding_dsp rounding,
                                               const tinyet_tiles_dsp tiles, const tinyet_band_dsp b) {
  const int32_t count = s.out_h * s.out_w, span_h = tinyet_span_h_dsp(s), span_w = tinyet_span_w_dsp(s);
  const int inside = tinyet_inside_dsp(s), banded = b.outputs != 0;
  const int taps = s.kernel_h == 1 && s.dilation_w != 1; /* are what the printed function takes for rows */
  const int may_be = s.in_h >= span_h && s.in_w >= span_w;
  const uint32_t last_top = (uint32_t)(s.in_h - span_h), last_left = (uint32_t)(s.in_w - span_w);
  const int32_t pixel = banded ? s.in_c : s.in_pixel_stride, row = (banded ? b.columns : s.in_w) * pixel;
  const int32_t right = s.stride_w * pixel, down = s.stride_h * row; /* bytes from an output's window to the next one's */
  uint32_t *const pixels = (uint32_t *)scratch;
  int8_t *const padded = (int8_t *)(pixels + tiles.pixels * tiles.pairs);
  for (int32_t n = 0; n < s.batch; n++) {
    int32_t y = 0, x = 0, end = 0;                                     /* end: output rows before it have theirs in the band */
    int32_t at = banded ? 0 : -s.pad_top * row - s.pad_left * pixel; /* where the first window of row y begins */
    for (int32_t first = 0; first < count; first += tiles.pixels) {
      const int both = !(tiles.one && count % 2 != 0 && first == count - 1);
      if (!tiles.one && count % tiles.pixels != 0 && first > count - tiles.pixels) {
        const int32_t before = y;
        first = count - tiles.pixels;
        y = first / s.out_w;
        x = first % s.out_w;
        at += (y - before) * down;
        end = tiles.pixels > 2 ? 0 : end; /* the band may begin behind them */
      }
      for (int32_t pair = 0; pair < tiles.pixels; pair += 2) {
        uint32_t *const seen = pixels + pair * tiles.pairs;
        const int wraps = both && s.out_h > 1 && s.out_w % 2 != 0 && x == s.out_w - 1;
        const int8_t *rows = input;
        if (banded) {
          rows = padded;
          if (y + wraps >= end) {
            tinyet_padded_dsp(padded, b.columns, input, y * s.stride_h - s.pad_top, -s.pad_left, b.rows, 1, b.columns, s);
            end = y + b.outputs;
            at = 0;
          }
        }
        int32_t step = taps ? s.dilation_w * pixel : s.dilation_h * row;
        const int8_t *a, *next;
        const int32_t top = y * s.stride_h - s.pad_top, left = x * s.stride_w - s.pad_left;
        const int32_t next_top = wraps ? top + s.stride_h : top;
        const int32_t next_left = wraps ? -s.pad_left : left + both * s.stride_w;
        if (banded || inside ||
            (may_be && (uint32_t)top <= last_top && (uint32_t)left <= last_left && (!wraps || (uint32_t)next_top <= last_top) &&
             (uint32_t)next_left <= last_left)) {
          a = rows + at + x * right;
          next = wraps ? rows + at + down : a + right;
        } else {
          const int32_t apart = taps ? b.columns : span_w; /* from one copy to the next */
          a = padded;
          next = padded + (taps || wraps ? apart : both * s.stride_w) * s.in_c;
          step = (taps ? 1 : b.columns) * s.in_c;
          /* Of one row at once what both see. */
          for (int32_t j = 0; j < 1 + (both && (taps || wraps)); j++) {
            int8_t *const window = padded + j * apart * s.in_c;
            const int32_t y0 = j != 0 ? next_top : top, x0 = j != 0 ? next_left : left;
            if (taps) {
              tinyet_padded_taps_dsp(window, input, y0, x0, s);
            } else {
              const int32_t columns = wraps ? span_w : span_w + both * s.stride_w;
              tinyet_padded_dsp(window, b.columns, input, y0, x0, b.rows, s.dilation_h, columns, s);
            }
          }
        }
        if (both) {
          tiles.see_two(a, next, seen, step);
        } else {
          tiles.see_one(a, a, seen, step);
        }
        if (pair == tiles.pixels - 2) {
          int8_t *const out = output + first * s.out_pixel_stride;
          if (both) {
            tinyet_outputs_of_tile_dsp(tiles.several, weights, pixels, out, tiles, s);
          } else {
            tinyet_outputs_of_tile_dsp(tiles.one, weights, pixels, out, tiles, s);
          }
        }
        x += 2;
        while (s.out_h > 1 && x >= s.out_w) {
          x -= s.out_w;
          y++;
          at += down;
        }
      }
    }
    input += s.in_h * s.in_w * s.in_pixel_stride;
    output += count * s.out_pixel_stride;
  }
  tinyet_clamp_pixels_dsp(output, s, rounding);
}

/* The same for a pointwise one without padding, of an even number of pixels, whose input lies in pairs already: for each two
 * pixels, for each of their channels c, c + 2 and c + 1, c + 3 a word of the first and one of the second. */
TINYET_DSP_INLINE void tinyet_conv2d_nhw2c2_tiles_dsp(const int8_t *input, int8_t *output, const int32_t *weights,
                                                      const tinyet_conv2d_shape_dsp s, const tinyet_rounding_dsp rounding,
                                                      const tinyet_tiles_dsp tiles) {
  const uint32_t *pixels = (const uint32_t *)(const void *)input;
  const int32_t rest = s.out_w % tiles.pixels; /* of four: two */
  int8_t *const end = output + s.out_w * s.out_pixel_stride;
  for (const int8_t *const whole = end - rest * s.out_pixel_stride; output != whole; output += tiles.pixels * s.out_pixel_stride) {
    tinyet_outputs_of_tile_dsp(tiles.several, weights, pixels, output, tiles, s);
    pixels += tiles.pixels / 2 * s.in_c;
  }
  if (rest != 0) {
    tinyet_outputs_of_tile_dsp(tiles.several, weights, pixels - s.in_c, output - rest * s.out_pixel_stride, tiles, s);
  }
  tinyet_clamp_pixels_dsp(end, s, rounding);
}

#endif
