/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised int8 depthwise convolutions for cores with DSP instructions, on planes of int16: see tinyet_depthwise_chw_dsp.h.
 *
 * 3x3: dilation_u 1, stride_u 1 or 2, multiplier 1. Word j of a plane's row holds the inputs u = 2 * j - pad_u and the one
 *   behind it. Output rows are computed by a printed function (tinyet_depthwise_rows_dsp.h).
 * tinyet_depthwise_s8_chw_dsp: whatever there is. The weight stream, in words, for each output channel:
 *   pairs of neighbouring taps along u, row by row, the last of an odd number with a zero, two pairs a word:
 *   bytes {a0, b0, a1, b1}, | bias | multiplier | shift */
#ifndef TINYET_DEPTHWISE_DSP_H
#define TINYET_DEPTHWISE_DSP_H

#include "tinyet_depthwise_rows_dsp.h"

enum { TINYET_DSP_TAPS = 4 };

/* A group of channels, of the tile of output rows from `top` on. */
TINYET_DSP_INLINE void tinyet_depthwise_3x3_tile_dsp(const int8_t *input, int8_t *output, uint32_t *planes,
                                                     const int32_t *weights, int32_t channel, int32_t top,
                                                     const int32_t words, const int32_t together,
                                                     const tinyet_planes_function_dsp fill,
                                                     const tinyet_depthwise_rows_function_dsp rows,
                                                     const tinyet_depthwise_shape_dsp s) {
  const int32_t turns = tinyet_rows_left_dsp(top, s) / together;
  tinyet_fill_planes_dsp(planes, input + channel, top, fill, s);
  rows(weights + channel * words, planes, output + top * s.out_step_v + tinyet_out_byte_dsp(channel, s),
       planes + turns * together * s.stride_v * tinyet_row_words_dsp(s));
}

/* words: of the weights of a channel. together: output rows of a turn of `rows`. scratch: 4 * group * tinyet_tile_rows_dsp *
 * tinyet_row_words_dsp bytes. Needs as many channels as a group has; where the last group has fewer, those before are computed
 * twice. */
TINYET_DSP_INLINE void tinyet_depthwise_3x3_dsp(const int8_t *input, int8_t *output, void *scratch, const int32_t *weights,
                                                const int32_t words, const int32_t together,
                                                const tinyet_planes_function_dsp fill,
                                                const tinyet_depthwise_rows_function_dsp rows,
                                                const tinyet_depthwise_shape_dsp s) {
  uint32_t *const planes = (uint32_t *)scratch;
  tinyet_blank_planes_dsp(planes, s);
  for (int32_t n = 0; n < s.batch; n++) {
    TINYET_DSP_OVER_TILES(
        s, tinyet_depthwise_3x3_tile_dsp(input, output, planes, weights, channel, top, words, together, fill, rows, s))
    input += s.in_u * s.in_v * tinyet_pixel_stride_dsp(s.in_step_u, s.in_step_v);
    output +=
        s.pairs ? s.out_v * s.out_step_v : s.out_u * s.out_v * tinyet_pixel_stride_dsp(s.out_step_u, s.out_step_v);
  }
}

/* ---- any kernel ---- */

/* Pairs of taps of a kernel row. */
TINYET_DSP_INLINE int32_t tinyet_tap_pairs_dsp(const tinyet_depthwise_shape_dsp s) { return (s.kernel_u + 1) / 2; }

/* Words of weights of an output channel. */
TINYET_DSP_INLINE int32_t tinyet_tap_words_dsp(const tinyet_depthwise_shape_dsp s) {
  return (s.kernel_v * tinyet_tap_pairs_dsp(s) + 1) / 2;
}

#if TINYET_DSP_ASM
/* Volatile, so that the compiler leaves them in an order that needs few registers. */
TINYET_DSP_INLINE int32_t tinyet_ordered_smlad_dsp(uint32_t a, uint32_t b, int32_t c) {
  int32_t result;
  __asm__ volatile("smlad %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}
TINYET_DSP_INLINE uint32_t tinyet_ordered_load_dsp(const void *from, const int32_t offset) {
  uint32_t word;
  __asm__ volatile("ldr %0, %1" : "=r"(word) : "m"(*(const char(*)[4])((const char *)from + offset)));
  return word;
}
#else
TINYET_DSP_INLINE int32_t tinyet_ordered_smlad_dsp(uint32_t a, uint32_t b, int32_t c) {
  return tinyet_smlad_dsp(a, b, c);
}
TINYET_DSP_INLINE uint32_t tinyet_ordered_load_dsp(const void *from, const int32_t offset) {
  return tinyet_load_dsp((const int8_t *)from + offset);
}
#endif

/* `pairs` pairs of taps, at most TINYET_DSP_TAPS, for `count` sums whose first values are `step` apart. Each word of the
 * plane is loaded once where neighbours can share it. */
TINYET_DSP_INLINE void tinyet_tap_row_dsp(int32_t *sums, const int16_t *from, const uint32_t *taps, const int32_t pairs,
                                          const int32_t count, const int32_t step) {
  uint32_t weights[TINYET_DSP_TAPS];
  const int32_t shared = step < 3, last = shared ? (count - 1) * step + 2 * (pairs - 1) : pairs * count - 1;
#pragma GCC unroll 32
  for (int32_t at = 0; at <= last; at++) {
    /* Value `at` for all sums, or each pair of taps for one after another. */
    const int32_t value = shared ? at : at % count * step + at / count * 2;
    const int32_t first = shared ? 0 : at % count, end = shared ? count : first + 1;
    uint32_t word = 0;
    int32_t loaded = 0;
#pragma GCC unroll 4
    for (int32_t i = first; i < end; i++) {
      const int32_t t = (value - i * step) / 2;
      if (value >= i * step && (value - i * step) % 2 == 0 && t < pairs) {
        if (i == 0) {
          weights[t] = tinyet_ordered_load_dsp(taps, 4 * t);
        }
        if (!loaded) {
          word = tinyet_ordered_load_dsp(from, 2 * value);
          loaded = 1;
        }
        sums[i] = tinyet_ordered_smlad_dsp(word, weights[t], sums[i]);
      }
    }
  }
}

/* `count` outputs, `out_step` bytes apart: `from` is the first one's first value, `step` values apart. */
TINYET_DSP_INLINE void tinyet_depthwise_outputs_dsp(const int16_t *from, int8_t *out, const uint32_t *taps,
                                                    int32_t bias, int32_t multiplier, int32_t offset, int32_t shift,
                                                    const int32_t count, const int32_t step, const int32_t out_step,
                                                    const tinyet_depthwise_shape_dsp s,
                                                    const tinyet_rounding_dsp rounding) {
  const int32_t pairs = tinyet_tap_pairs_dsp(s), rest = pairs % TINYET_DSP_TAPS;
  int32_t sums[4];
#pragma GCC unroll 4
  for (int32_t i = 0; i < count; i++) {
    sums[i] = bias;
  }
  for (int32_t ky = 0; ky < s.kernel_v; ky++) {
    if (s.kernel_v > 1) {
      TINYET_DSP_UNKNOWN(ky);
    }
    for (int32_t t = 0; t < pairs - rest; t += TINYET_DSP_TAPS) {
      TINYET_DSP_UNKNOWN(t);
      tinyet_tap_row_dsp(sums, from + 2 * t, taps + t, TINYET_DSP_TAPS, count, step);
    }
    if (rest > 0) {
      tinyet_tap_row_dsp(sums, from + 2 * (pairs - rest), taps + pairs - rest, rest, count, step);
    }
    taps += pairs;
    from += 2 * s.dilation_v * tinyet_row_words_dsp(s);
  }
#pragma GCC unroll 4
  for (int32_t i = 0; i < count; i++) {
    out[i * out_step] = tinyet_round_dsp(sums[i], multiplier, offset, shift, rounding);
  }
}

/* One output row of one channel: `row` is its first input row in the plane. */
TINYET_DSP_INLINE void tinyet_depthwise_row_dsp(const int16_t *row, int8_t *out, const uint32_t *taps, int32_t bias,
                                                int32_t multiplier, int32_t offset, int32_t shift,
                                                const tinyet_depthwise_shape_dsp s,
                                                const tinyet_rounding_dsp rounding) {
  const int32_t runs = s.apart < s.out_u ? s.apart : s.out_u, block = s.out_u / runs < 4 ? s.out_u / runs : 4;
  for (int32_t run = 0; run < runs; run++) {
    const int16_t *const from = row + run * s.stride_u % s.dilation_u * s.part + run * s.stride_u / s.dilation_u;
    const int32_t count = (s.out_u - run + s.apart - 1) / s.apart;
    for (int32_t i = 0; i < count; i += block) {
      if (count % block != 0 && i > count - block) {
        i = count - block; /* some are computed twice */
      }
      tinyet_depthwise_outputs_dsp(from + i * s.between, out + (run + i * s.apart) * s.out_step_u, taps, bias,
                                   multiplier, offset, shift, block, s.between, s.apart * s.out_step_u, s, rounding);
    }
  }
}

/* A group of channels, of the tile of output rows from `top` on. */
TINYET_DSP_INLINE void tinyet_depthwise_chw_tile_dsp(const int8_t *input, int8_t *output, uint32_t *planes,
                                                     const int32_t *weights, int32_t channel, int32_t top,
                                                     const tinyet_planes_function_dsp fill,
                                                     const tinyet_depthwise_shape_dsp s,
                                                     const tinyet_rounding_dsp rounding) {
  const int32_t row = tinyet_row_words_dsp(s), plane = tinyet_tile_rows_dsp(s) * row, words = tinyet_tap_words_dsp(s);
  uint32_t *const taps = planes + s.group * plane;
  tinyet_fill_planes_dsp(planes, input + channel, top, fill, s);
  for (int32_t k = 0; k < s.group * s.multiplier; k++) {
    TINYET_DSP_UNKNOWN(k);
    const int32_t *w = weights + (channel * s.multiplier + k) * (words + 3);
    for (int32_t i = 0; i < words; i++) {
      taps[2 * i] = tinyet_even_bytes_dsp((uint32_t)w[i]);
      taps[2 * i + 1] = tinyet_odd_bytes_dsp((uint32_t)w[i]);
    }
    const int32_t bias = w[words], multiplier = w[words + 1], shift = w[words + 2];
    const int32_t offset = tinyet_offset_dsp(shift, s.out_zero_point, rounding);
    const uint32_t *rows = planes + k / s.multiplier * plane;
    int8_t *out = output + top * s.out_step_v + channel * s.multiplier + k;
    for (int32_t v = tinyet_rows_left_dsp(top, s); v > 0; v--) {
      TINYET_DSP_UNKNOWN(v);
      tinyet_depthwise_row_dsp((const int16_t *)rows, out, taps, bias, multiplier, offset, shift, s, rounding);
      rows += s.stride_v * row;
      out += s.out_step_v;
    }
  }
}

/* scratch: 4 * (group * tinyet_tile_rows_dsp * tinyet_row_words_dsp + 2 * tinyet_tap_words_dsp) bytes. Channels as for 3x3. */
TINYET_DSP_INLINE void tinyet_depthwise_s8_chw_dsp(const int8_t *input, int8_t *output, void *scratch,
                                                   const int32_t *weights, const tinyet_planes_function_dsp fill,
                                                   const tinyet_depthwise_shape_dsp s,
                                                   const tinyet_rounding_dsp rounding) {
  uint32_t *const planes = (uint32_t *)scratch;
  tinyet_blank_planes_dsp(planes, s);
  for (int32_t n = 0; n < s.batch; n++) {
    TINYET_DSP_OVER_TILES(s,
                          tinyet_depthwise_chw_tile_dsp(input, output, planes, weights, channel, top, fill, s, rounding))
    input += s.in_u * s.in_v * tinyet_pixel_stride_dsp(s.in_step_u, s.in_step_v);
    output += s.out_u * s.out_v * tinyet_pixel_stride_dsp(s.out_step_u, s.out_step_v);
  }
}

#endif
