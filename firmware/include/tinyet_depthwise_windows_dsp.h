/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions compute, in C, that tinyet/tiles prints for output rows of depthwise convolutions of any size: those of some
 * channels one after another, each from its plane of int16 (tinyet_depthwise_chw_dsp.h), or all from one, and its part of the
 * stream of weights.
 *
 * The stream, in words, for each channel: weights of int8, kernel row by kernel row, up to a whole word | bias, shifted by
 * tinyet_before_dsp, as weights will be | multiplier, twice itself where the rounding is plain | shift. Where outputs are int16
 * neither is shifted, and there is no shift. */
#ifndef TINYET_DEPTHWISE_WINDOWS_DSP_H
#define TINYET_DEPTHWISE_WINDOWS_DSP_H

#include "tinyet_depthwise_chw_dsp.h"
#include "tinyet_s16_dsp.h"

typedef struct {
  int32_t outputs;                 /* of a row */
  int32_t taps, kernel_rows, rest; /* taps of each kernel row, and of a last one behind them */
  int32_t stride, dilation;        /* along the row */
  int32_t part;                    /* values */
  int32_t kernel_row, next_row;    /* words from kernel row to kernel row, and from output row to output row */
  int32_t plane;                   /* words from a channel's plane to the next one's, or 0 */
  int32_t channels;
  int32_t step, below; /* bytes to the next output, and to that of the next row */
  int32_t zero_point;
  tinyet_rounding_dsp rounding;
} tinyet_depthwise_windows_shape_dsp;

/* Words of a channel's weights, from int8. */
TINYET_DSP_INLINE int32_t tinyet_windows_weight_words_dsp(const tinyet_depthwise_windows_shape_dsp s) {
  return (s.taps * s.kernel_rows + s.rest + 3) / 4;
}

/* The sum of output u of a row that begins with the input rows at `rows`; weights are shifted by `before`. */
TINYET_DSP_INLINE int32_t tinyet_windows_sum_dsp(const int32_t *w, const uint32_t *rows, int32_t u, int32_t before,
                                                 const tinyet_depthwise_windows_shape_dsp s) {
  const int8_t *const weights = (const int8_t *)(const void *)w;
  const int32_t first = u * s.stride, begin = first % s.dilation * s.part + first / s.dilation;
  uint32_t sum = (uint32_t)w[tinyet_windows_weight_words_dsp(s)];
  for (int32_t i = 0; i < s.taps * s.kernel_rows + s.rest; i++) {
    const int32_t row = i / s.taps < s.kernel_rows ? i / s.taps : s.kernel_rows;
    const int32_t at = begin + i - row * s.taps;
    const int32_t value = tinyet_half_dsp(rows[row * s.kernel_row + at / 2], at % 2);
    sum += (uint32_t)(weights[i] * (1 << before) * value);
  }
  return (int32_t)sum;
}

/* The output rows of one channel. */
TINYET_DSP_INLINE void tinyet_depthwise_windows_channel_dsp(const int32_t *w, const uint32_t *rows, int8_t *out,
                                                            const uint32_t *end,
                                                            const tinyet_depthwise_windows_shape_dsp s) {
  const int32_t words = tinyet_windows_weight_words_dsp(s), shift = w[words + 2];
  const int32_t multiplier = s.rounding.form == TINYET_DSP_PLAIN ? (int32_t)((uint32_t)w[words + 1] >> 1) : w[words + 1];
  const int32_t offset = tinyet_offset_dsp(shift, s.zero_point, s.rounding);
  for (; rows != end; rows += s.next_row, out += s.below) {
    for (int32_t u = 0; u < s.outputs; u++) {
      const int32_t sum = tinyet_windows_sum_dsp(w, rows, u, tinyet_before_dsp(shift, s.rounding), s);
      out[u * s.step] = tinyet_round_shifted_dsp(sum, multiplier, offset, shift, s.rounding);
    }
  }
}

TINYET_DSP_INLINE void tinyet_depthwise_windows_dsp(const int32_t *weights, const uint32_t *planes, int8_t *output,
                                                    const uint32_t *end, const tinyet_depthwise_windows_shape_dsp s) {
  const int32_t words = tinyet_windows_weight_words_dsp(s) + 3;
  for (int32_t k = 0; k < s.channels; k++) {
    tinyet_depthwise_windows_channel_dsp(weights + k * words, planes + k * s.plane, output + k, end + k * s.plane, s);
  }
}

/* The same to int16. */
TINYET_DSP_INLINE void tinyet_depthwise_windows_s16_dsp(const int32_t *weights, const uint32_t *planes, int16_t *output,
                                                        const uint32_t *end,
                                                        const tinyet_depthwise_windows_shape_dsp s) {
  const tinyet_rounding_s16_dsp rounding = {s.rounding.exponent, s.rounding.low, s.rounding.high};
  const int32_t words = tinyet_windows_weight_words_dsp(s) + 2;
  for (int32_t k = 0; k < s.channels; k++) {
    const int32_t *const w = weights + k * words;
    int16_t *out = output + k;
    for (const uint32_t *rows = planes + k * s.plane; rows != end + k * s.plane; rows += s.next_row) {
      for (int32_t u = 0; u < s.outputs; u++) {
        const int32_t sum = tinyet_windows_sum_dsp(w, rows, u, 0, s);
        tinyet_store_s16_dsp(out + u * (s.step / 2), tinyet_round_s16_dsp(sum, w[words - 1], rounding));
      }
      out += s.below / 2;
    }
  }
}

#endif
