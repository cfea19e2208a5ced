/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions compute, in C, that tinyet/tiles prints for output rows of 3x3 depthwise convolutions: those of some
 * channels one after another, each from its plane of int16 (tinyet_depthwise_chw_dsp.h) and its part of the stream of weights.
 *
 * The stream, in words, for each channel. Wide, weights are int16 as they are multiplied (tinyet_before_dsp is in them, and in the
 * bias): of each kernel row {w0, w1} and, for a stride of 1, {w1, w2}, or behind all three {w2, w2'} and {0, w2''}
 *   | bias | multiplier | offset | shift, which is missing where the rounding is one-sided
 * Else they are int8: of each kernel row bytes {w0, x, w1, w2}, where the first x is the shift | bias, shifted | multiplier
 * Where outputs are int16, weights are int8, and nothing is shifted. */
#ifndef TINYET_DEPTHWISE_ROWS_DSP_H
#define TINYET_DEPTHWISE_ROWS_DSP_H

#include "tinyet_depthwise_chw_dsp.h"
#include "tinyet_s16_dsp.h"

typedef struct {
  int32_t outputs; /* of a row */
  int32_t stride, stride_v, dilation_v;
  int32_t row_words, plane_rows;
  int32_t channels;
  int32_t alone;           /* whether a row more comes behind `end` */
  int32_t step, two, below; /* bytes to the next output, to the next but one, to that of the next row */
  int32_t pairs, wide, zero_point;
  tinyet_rounding_dsp rounding;
} tinyet_depthwise_rows_shape_dsp;

/* Weight i of 9, shifted. */
TINYET_DSP_INLINE int32_t tinyet_depthwise_weight_dsp(const int32_t *w, int32_t i, int32_t before,
                                                      const tinyet_depthwise_rows_shape_dsp s) {
  const int32_t k = i / 3, tap = i % 3;
  if (!s.wide) {
    const int32_t place = tap == 0 ? 0 : 8 + 8 * tap;
    return (int8_t)(uint8_t)((uint32_t)w[k] >> place) * (1 << before);
  }
  if (s.stride == 1) {
    return tinyet_half_dsp((uint32_t)w[2 * k + tap / 2], tap > 0);
  }
  return tap < 2 ? tinyet_half_dsp((uint32_t)w[k], tap) : tinyet_half_dsp((uint32_t)w[3 + k / 2], k > 0);
}

/* The sum of output u of a row that begins with the input rows at `rows`. */
TINYET_DSP_INLINE int32_t tinyet_depthwise_sum_dsp(const int32_t weights[9], int32_t bias, const uint32_t *rows, int32_t u,
                                                   const tinyet_depthwise_rows_shape_dsp s) {
  uint32_t sum = (uint32_t)bias;
  for (int32_t i = 0; i < 9; i++) {
    const int32_t at = u * s.stride + i % 3;
    sum += (uint32_t)(weights[i] * tinyet_half_dsp(rows[i / 3 * s.dilation_v * s.row_words + at / 2], at % 2));
  }
  return (int32_t)sum;
}

/* The output rows of one channel, up to `end` and, maybe, one more. */
TINYET_DSP_INLINE void tinyet_depthwise_channel_dsp(const int32_t *w, const uint32_t *rows, int8_t *out, const uint32_t *end,
                                                    const tinyet_depthwise_rows_shape_dsp s) {
  const int32_t words = !s.wide ? 3 : (s.stride == 1 ? 6 : 5), next = s.stride_v * s.row_words;
  int32_t weights[9], shift = 0, offset;
  if (s.wide) {
    offset = w[words + 2];
    if (s.rounding.form == TINYET_DSP_TWO_SIDED) {
      shift = w[words + 3];
    }
  } else {
    shift = (int8_t)(uint8_t)((uint32_t)w[0] >> 8);
    offset = tinyet_offset_dsp(shift, s.zero_point, s.rounding);
  }
  for (int32_t i = 0; i < 9; i++) {
    weights[i] = tinyet_depthwise_weight_dsp(w, i, tinyet_before_dsp(shift, s.rounding), s);
  }
  for (const uint32_t *const last = s.alone ? end + next : end; rows != last; rows += next, out += s.below) {
    for (int32_t u = 0; u < s.outputs; u++) {
      const int32_t sum = tinyet_depthwise_sum_dsp(weights, w[words], rows, u, s);
      int8_t *const at = out + u / 2 * s.two + u % 2 * s.step;
      const int8_t value = tinyet_round_shifted_dsp(sum, w[words + 1], offset, shift, s.rounding);
      if (s.pairs) {
        *(int16_t *)(void *)at = value;
      } else {
        *at = value;
      }
    }
  }
}

TINYET_DSP_INLINE void tinyet_depthwise_rows_dsp(const int32_t *weights, const uint32_t *planes, int8_t *output,
                                                 const uint32_t *end, const tinyet_depthwise_rows_shape_dsp s) {
  const int32_t words = (!s.wide ? 5 : (s.stride == 1 ? 9 : 8)) + (s.wide && s.rounding.form == TINYET_DSP_TWO_SIDED);
  const int32_t plane = s.plane_rows * s.row_words;
  for (int32_t k = 0; k < s.channels; k++) {
    tinyet_depthwise_channel_dsp(weights + k * words, planes + k * plane, output, end + k * plane, s);
    /* Pairs of channels lie side by side, 8 bytes each two pixels; those of the next two in their other halves. */
    output += !s.pairs ? 1 : (k % 2 == 0 ? 8 : -6);
  }
}

/* The same to int16. */
TINYET_DSP_INLINE void tinyet_depthwise_rows_s16_dsp(const int32_t *weights, const uint32_t *planes, int16_t *output,
                                                     const uint32_t *end, const tinyet_depthwise_rows_shape_dsp s) {
  const tinyet_rounding_s16_dsp rounding = {s.rounding.exponent, s.rounding.low, s.rounding.high};
  const int32_t next = s.stride_v * s.row_words, plane = s.plane_rows * s.row_words;
  for (int32_t k = 0; k < s.channels; k++) {
    const int32_t *const w = weights + 5 * k;
    const uint32_t *const last = end + k * plane + (s.alone ? next : 0);
    int16_t *out = output + k;
    int32_t taps[9];
    for (int32_t i = 0; i < 9; i++) {
      taps[i] = tinyet_depthwise_weight_dsp(w, i, 0, s);
    }
    for (const uint32_t *rows = planes + k * plane; rows != last; rows += next, out += s.below / 2) {
      for (int32_t u = 0; u < s.outputs; u++) {
        const int32_t sum = tinyet_depthwise_sum_dsp(taps, w[3], rows, u, s);
        tinyet_store_s16_dsp(out + u / 2 * (s.two / 2) + u % 2 * (s.step / 2), tinyet_round_s16_dsp(sum, w[4], rounding));
      }
    }
  }
}

#endif
