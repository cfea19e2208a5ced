/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions that tinyet/tiles prints for int16 values compute, in C: all output channels of one pixel, a group of channels
 * at a time, to int16 (tinyet_s16_dsp.h), or their sums, int32.
 *
 * The inputs are pairs of int16. The weight stream, in words, for each group of channels:
 *   bias of each | for each pair the weights | multiplier of each, but for sums
 * Wide, the weights are a word a channel. Else each half of a word is 256 times a weight of channel b and one of channel a before
 * it, and each two channels begin with 256 * b + a in 64 bits; behind all of these is the bias of each a. */
#ifndef TINYET_TILE_S16_DSP_H
#define TINYET_TILE_S16_DSP_H

#include "tinyet_s16_dsp.h"
#include "tinyet_tile_dsp.h"

typedef struct {
  int32_t channels; /* of a group */
  int32_t pairs, wide, sums;
  tinyet_rounding_s16_dsp rounding;
} tinyet_tile_s16_shape_dsp;

/* Of a channel; `even` is that of the channel before, where this one is the second of two. */
TINYET_DSP_INLINE int32_t tinyet_tile_s16_sum_dsp(const int32_t *weights, const uint32_t *pixels, int32_t channel, int32_t even,
                                                  const tinyet_tile_s16_shape_dsp t) {
  if (t.wide) {
    int32_t sum = weights[channel];
    for (int32_t pair = 0; pair < t.pairs; pair++) {
      sum = tinyet_smlad_dsp((uint32_t)weights[(pair + 1) * t.channels + channel], pixels[pair], sum);
    }
    return sum;
  }
  const int32_t *const w = weights + t.channels + t.channels / 2 + channel / 2;
  if (channel % 2 == 0) {
    int32_t sum = weights[t.channels + channel / 2];
    for (int32_t pair = 0; pair < t.pairs; pair++) {
      sum = tinyet_smlad_dsp(tinyet_even_bytes_dsp((uint32_t)w[pair * t.channels / 2]), pixels[pair], sum);
    }
    return sum;
  }
  int64_t both;
  memcpy(&both, weights + channel - 1, sizeof both);
  for (int32_t pair = 0; pair < t.pairs; pair++) {
    for (int32_t half = 0; half < 2; half++) {
      const uint32_t word = (uint32_t)w[pair * t.channels / 2];
      both += (int64_t)tinyet_half_dsp(word, half) * tinyet_half_dsp(pixels[pair], half);
    }
  }
  return (int32_t)((both - even) / 256);
}

TINYET_DSP_INLINE void tinyet_tile_s16_dsp(const int32_t *weights, const uint32_t *pixels, void *output, const void *end,
                                           const tinyet_tile_s16_shape_dsp t) {
  const int32_t words = t.channels + (t.wide ? 0 : t.channels / 2) + t.pairs * t.channels / (t.wide ? 1 : 2);
  int8_t *out = (int8_t *)output;
  while (out != (const int8_t *)end) {
    int32_t sum = 0;
    for (int32_t channel = 0; channel < t.channels; channel++) {
      sum = tinyet_tile_s16_sum_dsp(weights, pixels, channel, sum, t);
      if (t.sums) {
        memcpy(out, &sum, sizeof sum);
        out += sizeof sum;
      } else {
        tinyet_store_s16_dsp((int16_t *)(void *)out, tinyet_round_s16_dsp(sum, weights[words + channel], t.rounding));
        out += sizeof(int16_t);
      }
    }
    weights += words + (t.sums ? 0 : t.channels);
  }
}

#endif
