/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions that tinyet/tiles prints compute, in C: all output channels of some neighbouring pixels, a group of channels
 * at a time.
 *
 * The inputs are pairs of int16, for each pair a word of each pixel; of four pixels all words of the first two, then all of the
 * others. The weight stream, in words, for each group of channels:
 *   bias of each | for each pair the weights | multiplier, offset, shift
 * Wide, the weights are a word a channel, and multiplier, offset and shift are of all channels one behind the other; shifts are
 * missing where the rounding is one-sided. Packed, each half of a word is 256 times a weight of channel b and one of channel a
 * before it; of each channel come multiplier, offset and shift, those of b before those of a; the bias of b is 256 times itself
 * and that of a; the shift of a is to the left, that of b to the right, where the rounding is one-sided. Alike, 256 times each
 * sum is rounded, without shifts, and each two channels have multiplier a | multiplier b | offset a | offset b. Plain, the weights
 * are wide, and each channel has, one behind the other, multiplier | offset | shift to the right | shift to the left before the
 * multiplication, one more than its factor wants | -1, and 0 where nothing is shifted to the right.
 *
 * Crossed, the weights are packed, of one pixel, and lie by two pairs: of each two channels the word of the first pair and that of
 * the second. 256 * B + A is a sum of products; A comes of Winograd's inner product, with weights a0, a1 and inputs x0, x1:
 *   (a0 + x1) * (a1 + x0) = a0 * x0 + a1 * x1 + a0 * a1 + x0 * x1,
 * where SXTAB16 takes a out of its half and adds x at once. The bias of a is less by all a0 * a1; behind the inputs is the sum of
 * all x0 * x1, shifted to the left as A is before it is rounded: by 8 alike, by 1 where the rounding is two-sided. */
#ifndef TINYET_TILE_DSP_H
#define TINYET_TILE_DSP_H

#include "tinyet_dsp.h"

/* A parameter of a function whose body is assembly alone. */
#define TINYET_TILE_UNUSED __attribute__((unused))

/* A printed function: the outputs of the first pixel, and where these end. */
typedef void (*tinyet_tile_function_dsp)(const int32_t *weights, const uint32_t *pixels, void *output, const void *end);

typedef struct {
  int32_t pixels, channels; /* of a group */
  int32_t packed, crossed, alike, pairs;
  int32_t step; /* bytes from pixel to pixel of the output */
  tinyet_rounding_dsp rounding;
} tinyet_tile_shape_dsp;

/* The output of a sum. */
TINYET_DSP_INLINE int8_t tinyet_tile_output_dsp(int32_t sum, const int32_t *ends, int32_t channel, const tinyet_tile_shape_dsp t) {
  const int one_sided = t.rounding.form == TINYET_DSP_ONE_SIDED;
  if (t.rounding.form == TINYET_DSP_PLAIN) {
    ends += 5 * channel;
    const int32_t lifted = tinyet_shift_left(sum, ends[3]);
    return (int8_t)tinyet_saturate_dsp(tinyet_smmlar_dsp(lifted, ends[0], ends[1] + ((lifted >> 31) & ends[4])) >> ends[2]);
  }
  if (!t.packed) {
    const int32_t shift = one_sided ? 0 : ends[2 * t.channels + channel];
    return tinyet_round_shifted_dsp(sum, ends[channel], ends[t.channels + channel], shift, t.rounding);
  }
  if (t.alike) {
    ends += 4 * (channel / 2) + channel % 2;
    return tinyet_round_shifted_dsp(channel % 2 != 0 ? sum : tinyet_shift_left(sum, 8), ends[0], ends[2], 0, t.rounding);
  }
  ends += 3 * (channel ^ 1);
  if (channel % 2 != 0) {
    sum >>= one_sided ? ends[2] : 7;
  } else {
    sum = tinyet_shift_left(sum, one_sided ? ends[2] : 1);
  }
  return tinyet_round_shifted_dsp(sum, ends[0], ends[1], ends[2], t.rounding);
}

/* Of a channel and a pixel, with the bias; crossed, of the first of two channels without the inputs' own products; 256 times that and the sum of the channel before where it is the second of two. */
TINYET_DSP_INLINE int32_t tinyet_tile_sum_dsp(const int32_t *weights, const uint32_t *pixels, int32_t channel, int32_t pixel,
                                              const tinyet_tile_shape_dsp t) {
  const int32_t words = t.packed ? t.channels / 2 : t.channels; /* of a pair */
  const int32_t side = t.pixels == 4 ? 2 : t.pixels;            /* pixels side by side */
  const int32_t *const w = weights + t.channels;
  int32_t sum = weights[channel];
  if (t.crossed) {
    const uint32_t *const x = pixels;
    for (int32_t pair = 0; pair < t.pairs; pair += 2) {
      const int32_t *const at = w + pair * words + channel / 2 * 2;
      const uint32_t u = (uint32_t)at[0], v = (uint32_t)at[1];
      if (channel % 2 == 0) {
        sum = tinyet_smlad_dsp(tinyet_add_even_bytes_dsp(x[pair + 1], u), tinyet_add_even_bytes_dsp(x[pair], v), sum);
      } else {
        sum = tinyet_smlad_dsp(v, x[pair + 1], tinyet_smlad_dsp(u, x[pair], sum));
      }
    }
    return sum;
  }
  for (int32_t pair = 0; pair < t.pairs; pair++) {
    const uint32_t word = (uint32_t)w[pair * words + (t.packed ? channel / 2 : channel)];
    const uint32_t weight = t.packed && channel % 2 == 0 ? tinyet_even_bytes_dsp(word) : word;
    sum = tinyet_smlad_dsp(weight, pixels[(pixel / side * t.pairs + pair) * side + pixel % side], sum);
  }
  return sum;
}

TINYET_DSP_INLINE void tinyet_tile_dsp(const int32_t *weights, const uint32_t *pixels, int8_t *output, const int8_t *end,
                                       const tinyet_tile_shape_dsp t) {
  for (; output != end; output += t.channels) {
    const int32_t *const ends = weights + t.channels + t.pairs * (t.packed ? t.channels / 2 : t.channels);
    for (int32_t m = 0; m < t.pixels; m++) {
      int32_t even = 0;
      for (int32_t channel = 0; channel < t.channels; channel++) {
        int32_t sum = tinyet_tile_sum_dsp(weights, pixels, channel, m, t);
        if (t.crossed && channel % 2 == 0) {
          const int32_t lift = t.alike ? 8 : t.rounding.form == TINYET_DSP_TWO_SIDED;
          sum = (int32_t)((uint32_t)tinyet_shift_left(sum, lift) - pixels[t.pairs]) >> lift;
        }
        if (t.packed && channel % 2 != 0) {
          sum = (int32_t)((uint32_t)sum - (uint32_t)even);
        }
        even = sum;
        output[m * t.step + channel] = tinyet_tile_output_dsp(sum, ends, channel, t);
      }
    }
    const int32_t words = !t.alike && (t.packed || t.rounding.form != TINYET_DSP_ONE_SIDED) ? 3 : 2;
    weights = ends + t.channels * (t.rounding.form == TINYET_DSP_PLAIN ? 5 : words);
  }
}

/* A printed function of sums of Winograd's convolutions: where the inputs end. */
typedef void (*tinyet_products_function_dsp)(const int32_t *weights, uint32_t *inputs, const uint32_t *end);

/* Sums of two channels of four transformed tiles, position by position: for each pair of input channels a word of each tile, then
 * room for the sums of the first channel and of the second. The weights: what both sums begin with, then a word of each channel for
 * each pair. */
TINYET_DSP_INLINE void tinyet_products_dsp(const int32_t *weights, uint32_t *inputs, const uint32_t *end, const int32_t pairs) {
  while (inputs != end) {
    int32_t sums[8];
    for (int32_t k = 0; k < 8; k++) {
      sums[k] = weights[k / 4];
    }
    weights += 2;
    for (int32_t pair = 0; pair < pairs; pair++, weights += 2, inputs += 4) {
      for (int32_t k = 0; k < 8; k++) {
        sums[k] = tinyet_smlad_dsp((uint32_t)weights[k / 4], inputs[k % 4], sums[k]);
      }
    }
    memcpy(inputs, sums, sizeof sums);
    inputs += 8;
  }
}

#endif
