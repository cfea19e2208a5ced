/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions that tinyet/tiles prints for four pixels of int16 values compute, in C: all output channels, a group of channels
 * at a time, to int16 (tinyet_s16_dsp.h), or their sums, int32.
 *
 * The inputs are pairs of int16 in lanes: a lane is one pair of values of one kernel row, and holds a word for each input column that
 * the pixels see. It has `min(stride, reach + 1)` runs of columns f, f + stride, f + 2 * stride, ...; tap t of pixel m is word
 * t * dilation / stride + m of run t * dilation % stride.
 *
 * The weight stream, in words, for each group of channels:
 *   bias of each | for each lane, for each tap the weights | multiplier of each, but for sums
 * Wide, the weights are a word a channel, else a word of bytes {a0, b0, a1, b1} two channels. */
#ifndef TINYET_TILE_LANES_S16_DSP_H
#define TINYET_TILE_LANES_S16_DSP_H

#include "tinyet_s16_dsp.h"
#include "tinyet_tile_dsp.h"

typedef struct {
  int32_t channels; /* of a group */
  int32_t pairs, wide, sums;
  int32_t step;                   /* bytes from pixel to pixel of the output */
  int32_t taps, stride, dilation; /* of a lane */
  tinyet_rounding_s16_dsp rounding;
} tinyet_tile_lanes_s16_shape_dsp;

/* Of a channel and a pixel, with the bias. */
TINYET_DSP_INLINE int32_t tinyet_tile_lanes_s16_sum_dsp(const int32_t *weights, const uint32_t *pixels, int32_t channel,
                                                        int32_t pixel, const tinyet_tile_lanes_s16_shape_dsp t) {
  const int32_t reach = (t.taps - 1) * t.dilation, run = reach / t.stride + 4;
  const int32_t width = (t.stride < reach + 1 ? t.stride : reach + 1) * run;
  const int32_t words = t.wide ? t.channels : t.channels / 2; /* of a pair */
  const int32_t *const w = weights + t.channels + (t.wide ? channel : channel / 2);
  int32_t sum = weights[channel];
  for (int32_t pair = 0; pair < t.pairs; pair++) {
    const int32_t column = pair % t.taps * t.dilation;
    const uint32_t *const x = pixels + pair / t.taps * width + column % t.stride * run + column / t.stride;
    const uint32_t word = (uint32_t)w[pair * words];
    const uint32_t pair_of_weights = t.wide             ? word
                                     : channel % 2 == 0 ? tinyet_even_bytes_dsp(word)
                                                        : tinyet_odd_bytes_dsp(word);
    sum = tinyet_smlad_dsp(pair_of_weights, x[pixel], sum);
  }
  return sum;
}

TINYET_DSP_INLINE void tinyet_tile_lanes_s16_dsp(const int32_t *weights, const uint32_t *pixels, void *output, const void *end,
                                                 const tinyet_tile_lanes_s16_shape_dsp t) {
  const int32_t words = t.channels + t.pairs * (t.wide ? t.channels : t.channels / 2);
  const int32_t size = t.sums ? 4 : 2;
  for (int8_t *out = (int8_t *)output; out != (const int8_t *)end; out += t.channels * size) {
    for (int32_t m = 0; m < 4; m++) {
      for (int32_t channel = 0; channel < t.channels; channel++) {
        const int32_t sum = tinyet_tile_lanes_s16_sum_dsp(weights, pixels, channel, m, t);
        int8_t *const at = out + m * t.step + channel * size;
        if (t.sums) {
          memcpy(at, &sum, sizeof sum);
        } else {
          tinyet_store_s16_dsp((int16_t *)(void *)at, tinyet_round_s16_dsp(sum, weights[words + channel], t.rounding));
        }
      }
    }
    weights += words + (t.sums ? 0 : t.channels);
  }
}

/* A printed function that brings what four pixels see of a row into lanes: the first value that they see, and where words go. */
typedef void (*tinyet_columns_function_dsp)(const int16_t *from, uint32_t *to);

typedef struct {
  int32_t values;                 /* of a column, together; of an odd number the last one has a lane of its own */
  int32_t apart;                  /* bytes from column to column */
  int32_t taps, stride, dilation; /* of a lane */
} tinyet_columns_s16_shape_dsp;

/* What it computes, in C. */
TINYET_DSP_INLINE void tinyet_columns_s16_dsp(const int16_t *from, uint32_t *to, const tinyet_columns_s16_shape_dsp s) {
  const int32_t reach = (s.taps - 1) * s.dilation, run = reach / s.stride + 4, runs = s.stride < reach + 1 ? s.stride : reach + 1;
  for (int32_t f = 0; f < runs; f++) {
    for (int32_t i = 0; i < (reach - f) / s.stride + 4; i++) {
      const int16_t *const column = from + (f + i * s.stride) * (s.apart / 2);
      tinyet_put_int16x2_dsp(to + f * run + i, column, s.values, runs * run);
    }
  }
}

#endif
