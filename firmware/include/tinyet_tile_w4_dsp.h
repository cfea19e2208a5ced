/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions that tinyet/tiles prints for int4 weights compute, in C: all output channels of some neighbouring pixels, four
 * channels a, b, c and d at a time, whose weights of an input value are a half of a word.
 *
 * The inputs are pairs of int16, for each pair a word of each pixel. The weight stream, in words, for each four channels:
 *   what their four sums begin with | for each pair a word of weights | multiplier, offset, shift
 * Of each channel come multiplier, offset and shift, those of b before those of a, and those of d before those of c. Where the
 * rounding is one-sided, a shift is to the left by what a sum is still to be shifted, to the right by what it is too much. Alike,
 * 256 times each sum is rounded, without shifts: multiplier a | multiplier b | offset a | offset b, and the same of c and d.
 *
 * NIBBLES: the upper halves of a word's bytes 0 and 2 are the weights of a, those of bytes 1 and 3 of b; the lower ones of c and d.
 *   The biases are 16 times those of the channels, as the sums are.
 * DIGITS: a half of a word is 4096 * d + 256 * c + 16 * b + a. The sums, and biases, are 16 * A | 16 * B + A |
 *   16 * (256 * C + 16 * B + A) | 4096 * D + 256 * C + 16 * B + A.
 * CROSSED_DIGITS, of one pixel: the same with 8 added to a, b and c, so that digits but d have no sign. The sums are A | 16 * B + A |
 *   256 * C + A | 4096 * D + 256 * C + 16 * B + A; the first two by Winograd's inner product of two pairs (tinyet_tile_dsp.h), of which
 *   biases are less by the products of neighbouring weights. Behind the inputs are three words, with S eight times the sum of all
 *   and P that of the products of neighbours: P + S, shifted to the left by 8 alike and by 1 two-sided | 16 * S | 257 * S.
 * LONG_DIGITS: the same with the last sum in 64 bits. */
#ifndef TINYET_TILE_W4_DSP_H
#define TINYET_TILE_W4_DSP_H

#include "tinyet_tile_dsp.h"

enum { TINYET_TILE_NIBBLES = 0, TINYET_TILE_DIGITS = 1, TINYET_TILE_CROSSED_DIGITS = 2, TINYET_TILE_LONG_DIGITS = 3 };

typedef struct {
  int32_t pixels, weights; /* weights: TINYET_TILE_NIBBLES, ... */
  int32_t alike, pairs;
  int32_t step; /* bytes from pixel to pixel of the output */
  tinyet_rounding_dsp rounding;
} tinyet_tile_w4_shape_dsp;

/* By how much a sum of channel 0 ... 3 is shifted to the left. */
TINYET_DSP_INLINE int32_t tinyet_tile_w4_scale_dsp(int32_t channel, const tinyet_tile_w4_shape_dsp t) {
  switch (t.weights) {
  case TINYET_TILE_NIBBLES:
    return 4;
  case TINYET_TILE_DIGITS:
    return channel < 2 ? 4 : 12;
  case TINYET_TILE_LONG_DIGITS:
    return channel == 3 ? 0 : 4 * channel;
  default:
    return 4 * channel;
  }
}

/* Of a word of weights and channel 0 ... 3, the pair that is multiplied; crossed digits as they are, the first two in bytes. */
TINYET_DSP_INLINE uint32_t tinyet_tile_w4_factor_dsp(uint32_t word, int32_t channel, const tinyet_tile_w4_shape_dsp t) {
  if (t.weights == TINYET_TILE_NIBBLES) {
    const uint32_t bytes = (channel < 2 ? word : word << 4) & 0xf0f0f0f0u;
    return tinyet_even_bytes_dsp(channel % 2 != 0 ? bytes >> 8 : bytes);
  }
  if (channel == 3) {
    return word;
  }
  if (t.weights == TINYET_TILE_DIGITS) {
    const uint32_t three = (word << 4) & 0xfff0fff0u;
    return channel == 2 ? three : tinyet_even_bytes_dsp(channel == 1 ? word : three);
  }
  return word & (channel == 2 ? 0x0f0f0f0fu : channel == 1 ? 0x00ff00ffu : 0x000f000fu);
}

/* The sums of a pixel by themselves, each times what it is scaled by; that of crossed channel a lifted. */
TINYET_DSP_INLINE void tinyet_tile_w4_sums_dsp(const int32_t *weights, const uint32_t *pixels, int32_t pixel, int32_t sums[4],
                                               const tinyet_tile_w4_shape_dsp t) {
  const int long_digits = t.weights == TINYET_TILE_LONG_DIGITS;
  const int crossed = long_digits || t.weights == TINYET_TILE_CROSSED_DIGITS;
  const int32_t *const w = weights + (long_digits ? 5 : 4);
  for (int32_t channel = 0; channel < 4; channel++) {
    int32_t sum = weights[channel];
    for (int32_t pair = 0; pair < t.pairs; pair++) {
      const uint32_t factor = tinyet_tile_w4_factor_dsp((uint32_t)w[pair], channel, t);
      if (crossed && channel < 2) {
        const uint32_t next = tinyet_tile_w4_factor_dsp((uint32_t)w[pair + 1], channel, t);
        sum = tinyet_smlad_dsp(tinyet_add_int16x2_dsp(pixels[pair + 1], factor), tinyet_add_int16x2_dsp(pixels[pair], next), sum);
        pair++;
      } else {
        sum = tinyet_smlad_dsp(factor, pixels[pair * t.pixels + pixel], sum);
      }
    }
    sums[channel] = sum;
  }
  if (t.weights == TINYET_TILE_NIBBLES) {
    return;
  }
  const uint32_t a = (uint32_t)sums[0], b = (uint32_t)sums[1], c = (uint32_t)sums[2], d = (uint32_t)sums[3];
  if (!crossed) {
    sums[1] = (int32_t)(b - (uint32_t)(sums[0] >> 4));
    sums[2] = (int32_t)(c - (b << 4));
    sums[3] = (int32_t)(d - (uint32_t)((int32_t)c >> 4));
    return;
  }
  const uint32_t *const rest = pixels + t.pairs;
  const int32_t lift = t.alike ? 8 : t.rounding.form == TINYET_DSP_TWO_SIDED;
  sums[3] = (int32_t)(d - c - (b - a));
  if (long_digits) {
    int64_t all;
    memcpy(&all, weights + 3, sizeof all);
    for (int32_t pair = 0; pair < t.pairs; pair++) {
      for (int32_t half = 0; half < 2; half++) {
        all += (int64_t)tinyet_half_dsp((uint32_t)w[pair], half) * tinyet_half_dsp(pixels[pair], half);
      }
    }
    sums[3] = (int32_t)((all - (int32_t)(c + (b - a))) / 4096);
  }
  sums[0] = (int32_t)((a << lift) - rest[0]);
  sums[1] = (int32_t)(b - a - rest[1]);
  sums[2] = (int32_t)(c - rest[2] - (uint32_t)(sums[0] >> lift));
}

/* The output of channel 0 ... 3 of its sum. */
TINYET_DSP_INLINE int8_t tinyet_tile_w4_output_dsp(int32_t sum, const int32_t *ends, int32_t channel,
                                                   const tinyet_tile_w4_shape_dsp t) {
  const int one_sided = t.rounding.form == TINYET_DSP_ONE_SIDED;
  const int32_t *const end = t.alike ? ends + channel / 2 * 4 + channel % 2 : ends + 3 * (channel ^ 1);
  const int32_t scale = tinyet_tile_w4_scale_dsp(channel, t), to = t.alike ? 8 : 1;
  int32_t left = to - scale;
  if (one_sided && !t.alike) {
    left = scale > 4 ? -end[2] : end[2];
  } else if (scale == 0 && channel == 0) {
    left = 0; /* lifted already */
  }
  const int32_t shifted = left < 0 ? sum >> -left : tinyet_shift_left(sum, left);
  return tinyet_round_shifted_dsp(shifted, end[0], t.alike ? end[2] : end[1], t.alike ? 0 : end[2], t.rounding);
}

TINYET_DSP_INLINE void tinyet_tile_w4_dsp(const int32_t *weights, const uint32_t *pixels, int8_t *output, const int8_t *end,
                                          const tinyet_tile_w4_shape_dsp t) {
  for (; output != end; output += 4) {
    const int32_t *const ends = weights + (t.weights == TINYET_TILE_LONG_DIGITS ? 5 : 4) + t.pairs;
    for (int32_t m = 0; m < t.pixels; m++) {
      int32_t sums[4];
      tinyet_tile_w4_sums_dsp(weights, pixels, m, sums, t);
      for (int32_t channel = 0; channel < 4; channel++) {
        output[m * t.step + channel] = tinyet_tile_w4_output_dsp(sums[channel], ends, channel, t);
      }
    }
    weights = ends + 4 * (t.alike ? 2 : 3);
  }
}

#endif
