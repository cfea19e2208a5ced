/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of depthwise convolutions over the image: where a tap reads is a list of offsets, made once for all pixels whose
 * window lies inside the image, and for each other pixel. */
#ifndef TINYET_DEPTHWISE_H
#define TINYET_DEPTHWISE_H

#include "tinyet_conv2d.h"
#include "tinyet_int16x2.h"
#include "tinyet_window.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TINYET_OUTSIDE = -1 };

typedef struct {
  int32_t sum[4];
} tinyet_sums4;

/* One tap of four channels. */
static inline void tinyet_add_tap(tinyet_sums4 *q, const int8_t *x, const TINYET_ROM int8_t *w) {
#if TINYET_HAS_SIMD32
  const uint32_t values = tinyet_load4(x), weights = tinyet_load4(w);
  const int32_t x_even = tinyet_even_bytes(values), w_even = tinyet_even_bytes(weights);
  const int32_t x_odd = tinyet_odd_bytes(values), w_odd = tinyet_odd_bytes(weights);
  q->sum[0] = tinyet_mac_low(x_even, w_even, q->sum[0]);
  q->sum[2] = tinyet_mac_high(x_even, w_even, q->sum[2]);
  q->sum[1] = tinyet_mac_low(x_odd, w_odd, q->sum[1]);
  q->sum[3] = tinyet_mac_high(x_odd, w_odd, q->sum[3]);
#else
  q->sum[0] += x[0] * w[0];
  q->sum[1] += x[1] * w[1];
  q->sum[2] += x[2] * w[2];
  q->sum[3] += x[3] * w[3];
#endif
}

/* All channels of one pixel, whose outputs start at element `at`. corner: what the offsets count from. outside: four channels
 * of what a tap outside the image (of offset TINYET_OUTSIDE) reads, or NULL when all are inside. layer: as it was given. */
typedef void (*tinyet_depthwise_pixel)(const int8_t *corner, void *output, int32_t at, const int32_t *offsets,
                                       int32_t taps, int32_t channels, const int8_t *outside, const void *layer);

/* padding: what a tap outside the image reads. scratch: two lists of an offset a tap. */
static inline __attribute__((always_inline)) void tinyet_depthwise_walk(const int8_t *input, void *output,
                                                                        void *scratch, const tinyet_conv2d_shape *s,
                                                                        int8_t padding, const void *layer,
                                                                        tinyet_depthwise_pixel pixel) {
  const int32_t taps = s->kernel_h * s->kernel_w, channels = s->in_c;
  const int8_t outside[4] = {padding, padding, padding, padding};
  int32_t *const inside_offsets = (int32_t *)scratch, *const border_offsets = inside_offsets + taps;
  for (int32_t i = 0, t = 0; i < s->kernel_h; i++) {
    for (int32_t j = 0; j < s->kernel_w; j++) {
      inside_offsets[t++] = (i * s->dilation_h * s->in_w + j * s->dilation_w) * channels;
    }
  }
  int32_t at = 0;
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t out_y = 0; out_y < s->out_h; out_y++) {
      const int32_t top = out_y * s->stride_h - s->pad_top;
      const int32_t rows = tinyet_span_inside(top, s->kernel_h, s->dilation_h, s->in_h).count;
      for (int32_t out_x = 0; out_x < s->out_w; out_x++) {
        const int32_t left = out_x * s->stride_w - s->pad_left;
        const int32_t columns = tinyet_span_inside(left, s->kernel_w, s->dilation_w, s->in_w).count;
        if (rows == s->kernel_h && columns == s->kernel_w) {
          pixel(input + (top * s->in_w + left) * channels, output, at, inside_offsets, taps, channels, NULL, layer);
        } else {
          int32_t *offset = border_offsets;
          for (int32_t i = 0, y = top; i < s->kernel_h; i++, y += s->dilation_h) {
            for (int32_t j = 0, x = left; j < s->kernel_w; j++, x += s->dilation_w) {
              const int32_t there = y >= 0 && y < s->in_h && x >= 0 && x < s->in_w ? 1 : 0;
              *offset++ = there != 0 ? (y * s->in_w + x) * channels : (int32_t)TINYET_OUTSIDE;
            }
          }
          pixel(input, output, at, border_offsets, taps, channels, outside, layer);
        }
        at += channels;
      }
    }
    input += s->in_h * s->in_w * channels;
  }
}

#ifdef __cplusplus
}
#endif

#endif
