/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised int8 pooling, and sums over all pixels of an image, for cores with DSP instructions: see tinyet_dsp.h. */
#ifndef TINYET_POOL_DSP_H
#define TINYET_POOL_DSP_H

#include "tinyet_average.h"
#include "tinyet_dsp.h"
#include "tinyet_pool2d.h"
#include "tinyet_window.h"

/* The sums of four channels, which a word of each lane pair holds. */
TINYET_DSP_INLINE void tinyet_unpack_sums_dsp(int32_t sums[4], uint32_t even, uint32_t odd) {
  sums[0] = tinyet_half_dsp(even, 0);
  sums[1] = tinyet_half_dsp(odd, 0);
  sums[2] = tinyet_half_dsp(even, 1);
  sums[3] = tinyet_half_dsp(odd, 1);
}

/* Pixels whose sums fit int16, a multiple of what the loop over them is unrolled by. */
enum { TINYET_DSP_PIXELS = 248 };

/* Four channels of `count` pixels, which are `channels` bytes apart; at most 255 of them, so that sums fit int16. */
TINYET_DSP_INLINE void tinyet_four_s16_sums_dsp(int32_t sums[4], const int8_t *from, const int32_t count,
                                                const int32_t channels) {
  uint32_t even = 0, odd = 0;
#pragma GCC unroll 8
  for (int32_t i = 0; i < count; i++) {
    const uint32_t word = tinyet_load_dsp(from);
    even = tinyet_add_even_bytes_dsp(even, word);
    odd = tinyet_add_odd_bytes_dsp(odd, word);
    from += channels;
  }
  tinyet_unpack_sums_dsp(sums, even, odd);
}

/* The same of any number of pixels. */
TINYET_DSP_INLINE void tinyet_four_sums_dsp(int32_t sums[4], const int8_t *from, const int32_t count,
                                            const int32_t channels) {
  if (count <= INT8_MAX - INT8_MIN) {
    tinyet_four_s16_sums_dsp(sums, from, count, channels);
    return;
  }
  tinyet_four_s16_sums_dsp(sums, from, count % TINYET_DSP_PIXELS, channels);
  from += count % TINYET_DSP_PIXELS * channels;
  for (int32_t i = count / TINYET_DSP_PIXELS; i != 0; i--) {
    int32_t part[4];
    tinyet_four_s16_sums_dsp(part, from, TINYET_DSP_PIXELS, channels);
    for (int32_t k = 0; k < 4; k++) {
      sums[k] += part[k];
    }
    from += TINYET_DSP_PIXELS * channels;
  }
}

/* The last four channels overlap those before where their number is no multiple of 4. `finish` is an expression of `sum`. */
#define TINYET_DSP_OVER_PIXELS(input, output, images, count, channels, finish) \
  for (int32_t image = 0; image < (images); image++) {                         \
    for (int32_t c = 0; c < (channels); c += 4) {                              \
      if ((channels) % 4 != 0 && c > (channels)-4) {                           \
        c = (channels)-4;                                                      \
      }                                                                        \
      int32_t sums[4];                                                         \
      tinyet_four_sums_dsp(sums, (input) + c, (count), (channels));            \
      for (int32_t k = 0; k < 4; k++) {                                        \
        const int32_t sum = sums[k];                                           \
        (output)[c + k] = (finish);                                            \
      }                                                                        \
    }                                                                          \
    (input) += (count) * (channels);                                           \
    (output) += (channels);                                                    \
  }

/* Averages, ties away from zero. */
TINYET_DSP_INLINE void tinyet_average_s8_dsp(const int8_t *input, int8_t *output, const int32_t images,
                                             const int32_t count, const int32_t channels, const tinyet_division division){
    TINYET_DSP_OVER_PIXELS(input, output, images, count, channels, tinyet_divide(sum + division.start, &division))}

/* Requantized sums. */
TINYET_DSP_INLINE void tinyet_sum_s8_dsp(const int8_t *input, int8_t *output, const int32_t images, const int32_t count,
                                         const int32_t channels, const int32_t bias, const int32_t multiplier,
                                         const int32_t shift, const int32_t zero_point) {
  TINYET_DSP_OVER_PIXELS(input, output, images, count, channels,
                         (int8_t)tinyet_saturate_dsp(tinyet_requantize(sum + bias, multiplier, shift) + zero_point))
}

/* ---- sliding windows ---- */

/* Taps of the largest window that is straight code; larger ones, and those at a border, are loops. */
enum { TINYET_DSP_STRAIGHT = 16 };

/* Taps of a window that lie in the image. */
typedef struct {
  const int8_t *corner; /* the first one's first channel */
  int32_t rows, columns;
  int32_t row_step, column_step; /* bytes */
} tinyet_window_dsp;

/* Whether every window lies in the image. */
TINYET_DSP_INLINE int tinyet_unpadded_dsp(const tinyet_pool2d_shape s) {
  return s.pad_top == 0 && s.pad_left == 0 && (s.out_h - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h < s.in_h &&
         (s.out_w - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w < s.in_w;
}

/* Whether a window is straight code. Literal where the shape decides it. */
TINYET_DSP_INLINE int tinyet_straight_dsp(const tinyet_pool2d_shape s, const int32_t rows, const int32_t columns) {
  return s.kernel_h * s.kernel_w <= TINYET_DSP_STRAIGHT &&
         (tinyet_unpadded_dsp(s) || (rows == s.kernel_h && columns == s.kernel_w));
}

/* For every window `taps`, and the same as `whole` with literals for its size, where it is straight code; `pixel` is a
 * statement that writes `channels` values to `output`. Pitches are bytes from pixel to pixel. */
#define TINYET_DSP_OVER_WINDOWS(input, output, s, in_pixel_stride, out_pixel_stride, pixel)                         \
  for (int32_t n = 0; n < (s).batch; n++) {                                                                         \
    for (int32_t out_y = 0; out_y < (s).out_h; out_y++) {                                                           \
      tinyet_span y = {out_y * (s).stride_h, 0, (s).kernel_h};                                                      \
      if (!tinyet_unpadded_dsp(s)) {                                                                                \
        y = tinyet_span_inside(y.start - (s).pad_top, (s).kernel_h, (s).dilation_h, (s).in_h);                      \
      }                                                                                                             \
      for (int32_t out_x = 0; out_x < (s).out_w; out_x++) {                                                         \
        tinyet_span x = {out_x * (s).stride_w, 0, (s).kernel_w};                                                    \
        if (!tinyet_unpadded_dsp(s)) {                                                                              \
          x = tinyet_span_inside(x.start - (s).pad_left, (s).kernel_w, (s).dilation_w, (s).in_w);                   \
        }                                                                                                           \
        /* A window without taps may start outside the image: then no pointer is formed. */                         \
        const int32_t start = y.count * x.count != 0 ? (y.start * (s).in_w + x.start) * (in_pixel_stride) : 0;      \
        const tinyet_window_dsp taps = {(input) + start, y.count, x.count,                                          \
                                        (s).dilation_h * (s).in_w * (in_pixel_stride),                              \
                                        (s).dilation_w * (in_pixel_stride)};                                        \
        const tinyet_window_dsp whole = {taps.corner, (s).kernel_h, (s).kernel_w, taps.row_step, taps.column_step}; \
        pixel;                                                                                                      \
        (output) += (out_pixel_stride);                                                                             \
      }                                                                                                             \
    }                                                                                                               \
    (input) += (s).in_h * (s).in_w * (in_pixel_stride);                                                             \
  }

/* The next four channels; the last four overlap those before where their number is no multiple of 4. */
TINYET_DSP_INLINE int32_t tinyet_next_int8x4_dsp(int32_t c, const int32_t channels) {
  return channels % 4 != 0 && c + 4 < channels && c + 8 > channels ? channels - 4 : c + 4;
}

/* Maxima over a window of at least one tap. straight, and with it the window's size: literals. */
TINYET_DSP_INLINE void tinyet_max_of_window_dsp(const tinyet_window_dsp w, int8_t *output, const int32_t channels,
                                                const int straight) {
  for (int32_t c = 0; c < channels; c = tinyet_next_int8x4_dsp(c, channels)) {
    const int8_t *row = w.corner + c;
    uint32_t most = tinyet_load_dsp(row);
    if (straight) {
#pragma GCC unroll 16
      for (int32_t t = 1; t < w.rows * w.columns; t++) {
        const int8_t *tap = row + t / w.columns * w.row_step + t % w.columns * w.column_step;
        most = tinyet_greater_bytes_dsp(tinyet_load_dsp(tap), most);
      }
    } else {
      for (int32_t i = w.rows; i != 0; i--) {
        const int8_t *tap = row;
        for (int32_t j = w.columns; j != 0; j--) {
          most = tinyet_greater_bytes_dsp(tinyet_load_dsp(tap), most);
          tap += w.column_step;
        }
        row += w.row_step;
      }
    }
    tinyet_store_dsp(output + c, most);
  }
}

/* Maximum pooling; at least 4 channels. */
TINYET_DSP_INLINE void tinyet_max_pool2d_s8_dsp(const int8_t *input, int8_t *output, const tinyet_pool2d_shape s,
                                                const int32_t in_pixel_stride, const int32_t out_pixel_stride){
    TINYET_DSP_OVER_WINDOWS(input, output, s, in_pixel_stride, out_pixel_stride,
                            {
                              if (tinyet_straight_dsp(s, taps.rows, taps.columns)) {
                                tinyet_max_of_window_dsp(whole, output, s.channels, 1);
                              } else if (taps.rows * taps.columns == 0) {
                                memset(output, INT8_MIN, (size_t)s.channels);
                              } else {
                                tinyet_max_of_window_dsp(taps, output, s.channels, 0);
                              }
                            })}

/* Averages over a window of at most 255 taps, so that sums fit int16. straight, and with it the window's size: literals. */
TINYET_DSP_INLINE void tinyet_average_of_window_dsp(const tinyet_window_dsp w, int8_t *output, const int32_t channels,
                                                    const int straight, const tinyet_division division) {
  for (int32_t c = 0; c < channels; c = tinyet_next_int8x4_dsp(c, channels)) {
    const int8_t *row = w.corner + c;
    uint32_t even = 0, odd = 0;
    if (straight) {
#pragma GCC unroll 16
      for (int32_t t = 0; t < w.rows * w.columns; t++) {
        const uint32_t word = tinyet_load_dsp(row + t / w.columns * w.row_step + t % w.columns * w.column_step);
        even = tinyet_add_even_bytes_dsp(even, word);
        odd = tinyet_add_odd_bytes_dsp(odd, word);
      }
    } else {
      for (int32_t i = w.rows; i != 0; i--) {
        const int8_t *tap = row;
        for (int32_t j = w.columns; j != 0; j--) {
          const uint32_t word = tinyet_load_dsp(tap);
          even = tinyet_add_even_bytes_dsp(even, word);
          odd = tinyet_add_odd_bytes_dsp(odd, word);
          tap += w.column_step;
        }
        row += w.row_step;
      }
    }
    int32_t sums[4];
    tinyet_unpack_sums_dsp(sums, even, odd);
#pragma GCC unroll 4
    for (int32_t k = 0; k < 4; k++) {
      output[c + k] = tinyet_divide(sums[k] + division.start, &division);
    }
  }
}

/* Average pooling; at least 4 channels. division: of whole windows; divisions: rows of tinyet_division for windows with
 * first_count, first_count + 1, ... taps in the image, where there are others. */
TINYET_DSP_INLINE void tinyet_avg_pool2d_s8_dsp(const int8_t *input, int8_t *output, const tinyet_pool2d_shape s,
                                                const int32_t in_pixel_stride, const int32_t out_pixel_stride,
                                                const tinyet_division division, const int32_t *divisions,
                                                const int32_t first_count) {
  TINYET_DSP_OVER_WINDOWS(input, output, s, in_pixel_stride, out_pixel_stride, {
    if (tinyet_straight_dsp(s, taps.rows, taps.columns)) {
      tinyet_average_of_window_dsp(whole, output, s.channels, 1, division);
    } else if (tinyet_unpadded_dsp(s)) {
      tinyet_average_of_window_dsp(taps, output, s.channels, 0, division);
    } else {
      const tinyet_division part = tinyet_division_at(divisions, taps.rows * taps.columns - first_count);
      tinyet_average_of_window_dsp(taps, output, s.channels, 0, part);
    }
  })
}

#endif
