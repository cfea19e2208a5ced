/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised int8 pools with sliding windows for cores with Helium: windows side by side that lie in the image are printed functions
 * (tinyet/tiles/helium_pools.py), those across its border the code of tinyet_pool_dsp.h. */
#ifndef TINYET_POOL_MVE_H
#define TINYET_POOL_MVE_H

#include "tinyet_mve.h"
#include "tinyet_pool_dsp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* See tinyet/tiles/helium_pools.py. */
typedef struct {
  int32_t rows, columns, channels, row, column, step, out_step;
  int32_t multiplier, shift, offset, bias, even; /* of averages */
} tinyet_windows_mve;

/* count: of windows, at least one. */
typedef void (*tinyet_windows_function_mve)(const int8_t *from, int8_t *to, int32_t count);

void tinyet_max_windows_mve_twin(const int8_t *from, int8_t *to, int32_t count, const tinyet_windows_mve *s);
void tinyet_avg_windows_mve_twin(const int8_t *from, int8_t *to, int32_t count, const tinyet_windows_mve *s);

/* The windows in columns from `first` up to `behind` lie in the image, where those of their rows do: `windows` computes them.
 * border: a statement that writes the output of `taps`, a window that is cut off. All but pointers are literals. */
#define TINYET_MVE_OVER_WINDOWS(input, output, s, in_pixel_stride, out_pixel_stride, first, behind, windows, border)    \
  for (int32_t n = 0; n < (s).batch; n++) {                                                                             \
    for (int32_t out_y = 0; out_y < (s).out_h; out_y++) {                                                               \
      tinyet_span y = {out_y * (s).stride_h, 0, (s).kernel_h};                                                          \
      if (!tinyet_unpadded_dsp(s)) {                                                                                    \
        y = tinyet_span_inside(y.start - (s).pad_top, (s).kernel_h, (s).dilation_h, (s).in_h);                          \
      }                                                                                                                 \
      for (int32_t out_x = 0; out_x < (s).out_w;) {                                                                     \
        if (tinyet_unpadded_dsp(s) || (out_x == (first) && (first) < (behind) && y.count == (s).kernel_h)) {            \
          const int32_t start = (y.start * (s).in_w + (first) * (s).stride_w - (s).pad_left) * (in_pixel_stride);       \
          windows((input) + start, (output), (behind) - (first));                                                       \
          (output) += ((behind) - (first)) * (out_pixel_stride);                                                        \
          out_x = (behind);                                                                                             \
        } else {                                                                                                        \
          const tinyet_span x =                                                                                         \
              tinyet_span_inside(out_x * (s).stride_w - (s).pad_left, (s).kernel_w, (s).dilation_w, (s).in_w);          \
          /* A window without taps may start outside the image: then no pointer is formed. */                           \
          const int32_t start = y.count * x.count != 0 ? (y.start * (s).in_w + x.start) * (in_pixel_stride) : 0;        \
          const tinyet_window_dsp taps = {(input) + start, y.count, x.count,                                            \
                                          (s).dilation_h * (s).in_w * (in_pixel_stride),                                \
                                          (s).dilation_w * (in_pixel_stride)};                                          \
          border;                                                                                                       \
          (output) += (out_pixel_stride);                                                                               \
          out_x++;                                                                                                      \
        }                                                                                                               \
      }                                                                                                                 \
    }                                                                                                                   \
    (input) += (s).in_h * (s).in_w * (in_pixel_stride);                                                                 \
  }

/* Maximum pooling; at least 4 channels. */
TINYET_DSP_INLINE void tinyet_max_pool2d_s8_mve(const int8_t *input, int8_t *output, const tinyet_pool2d_shape s,
                                                const int32_t in_pixel_stride, const int32_t out_pixel_stride,
                                                const int32_t first, const int32_t behind,
                                                const tinyet_windows_function_mve windows){
    TINYET_MVE_OVER_WINDOWS(input, output, s, in_pixel_stride, out_pixel_stride, first, behind, windows,
                            {
                              if (taps.rows * taps.columns == 0) {
                                memset(output, INT8_MIN, (size_t)s.channels);
                              } else {
                                tinyet_max_of_window_dsp(taps, output, s.channels, 0);
                              }
                            })}

/* Average pooling; at least 4 channels. divisions: as in tinyet_avg_pool2d_s8_dsp. */
TINYET_DSP_INLINE void tinyet_avg_pool2d_s8_mve(const int8_t *input, int8_t *output, const tinyet_pool2d_shape s,
                                                const int32_t in_pixel_stride, const int32_t out_pixel_stride,
                                                const int32_t first, const int32_t behind,
                                                const tinyet_windows_function_mve windows, const int32_t *divisions,
                                                const int32_t first_count) {
  TINYET_MVE_OVER_WINDOWS(input, output, s, in_pixel_stride, out_pixel_stride, first, behind, windows, {
    const tinyet_division part = tinyet_division_at(divisions, taps.rows * taps.columns - first_count);
    tinyet_average_of_window_dsp(taps, output, s.channels, 0, part);
  })
}

#ifdef __cplusplus
}
#endif

#endif
