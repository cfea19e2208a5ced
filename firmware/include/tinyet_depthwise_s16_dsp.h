/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised depthwise convolutions with int16 activations for cores with DSP instructions: see tinyet_s16_dsp.h.
 *
 * Two channels at a time are taken out of the image into two planes in scratch, as tinyet_depthwise_chw_dsp.h describes them: the
 * same axes, parts and tiles.
 *
 * tinyet_depthwise_s16_chw_3x3_dsp: dilation_u 1, stride_u 1 or 2, multiplier 1. The weight stream, in words, for each channel:
 *   three kernel rows along u: bytes {w0, 0, w1, w2} | bias | multiplier
 * tinyet_depthwise_s16_chw_dsp: whatever there is. The weight stream, in words, for each output channel:
 *   pairs of neighbouring taps along u, row by row, the last of an odd number with a zero, two pairs a word:
 *   bytes {a0, b0, a1, b1}, | bias | multiplier */
#ifndef TINYET_DEPTHWISE_S16_DSP_H
#define TINYET_DEPTHWISE_S16_DSP_H

#include "tinyet_depthwise_chw_dsp.h"
#include "tinyet_s16_dsp.h"

enum { TINYET_DSP_TAPS = 4 };
enum { TINYET_DSP_DEPTHWISE_WORDS = 5 }; /* of the weights of a channel, 3x3 */

/* Sizes in pixels, steps in values; literals. */
typedef struct {
  int32_t batch, channels, multiplier; /* multiplier: output channels of one of the input */
  int32_t in_u, in_v, in_step_u, in_step_v;
  int32_t out_u, out_v, out_step_u, out_step_v;
  int32_t kernel_u, kernel_v, stride_u, stride_v, dilation_u, dilation_v;
  int32_t pad_u, pad_v;
  int32_t part, apart, between, tile; /* as tinyet_depthwise_shape_dsp has them */
} tinyet_depthwise_s16_shape_dsp;

/* Words of a plane's row. */
TINYET_DSP_INLINE int32_t tinyet_row_words_s16_dsp(const tinyet_depthwise_s16_shape_dsp s) {
  return s.dilation_u * s.part / 2;
}

/* Input rows of a tile. */
TINYET_DSP_INLINE int32_t tinyet_tile_rows_s16_dsp(const tinyet_depthwise_s16_shape_dsp s) {
  return (s.tile - 1) * s.stride_v + (s.kernel_v - 1) * s.dilation_v + 1;
}

/* The output rows of the tile at `top`. */
TINYET_DSP_INLINE int32_t tinyet_rows_left_s16_dsp(int32_t top, const tinyet_depthwise_s16_shape_dsp s) {
  const int32_t left = s.out_v - top;
  return s.out_v % s.tile == 0 || left > s.tile ? s.tile : left;
}

/* Two pixels of two channels into a word of each plane. */
TINYET_DSP_INLINE void tinyet_plane_word_s16_dsp(uint32_t *to, uint32_t first, uint32_t second, const int32_t plane) {
  to[0] = tinyet_low_int16x2_dsp(first, second);
  to[plane] = tinyet_high_int16x2_dsp(first, second);
}

/* `words` words of each plane: two pixels each, `step` values apart. */
TINYET_DSP_INLINE void tinyet_plane_words_s16_dsp(uint32_t *to, const int16_t *from, const int32_t words,
                                                  const int32_t step, const int32_t plane) {
  const int32_t together = words <= 6 ? words : (words % 4 == 0 ? 4 : (words % 5 == 0 ? 5 : (words % 3 == 0 ? 3 : 4)));
  for (int32_t left = words / together; left > 0; left--) {
    TINYET_DSP_UNKNOWN(left);
#pragma GCC unroll 6
    for (int32_t i = 0; i < together; i++) {
      tinyet_plane_word_s16_dsp(to + i, tinyet_load_int16x2_dsp(from + 2 * i * step),
                                tinyet_load_int16x2_dsp(from + (2 * i + 1) * step), plane);
    }
    to += together;
    from += 2 * together * step;
  }
#pragma GCC unroll 3
  for (int32_t i = 0; i < 3; i++) {
    if (i < words % together) {
      tinyet_plane_word_s16_dsp(to + i, tinyet_load_int16x2_dsp(from + 2 * i * step),
                                tinyet_load_int16x2_dsp(from + (2 * i + 1) * step), plane);
    }
  }
}

/* `count` pixels, `step` values apart, into the values from `first` on of a row; what shares a word with them is zero. */
TINYET_DSP_INLINE void tinyet_plane_values_s16_dsp(uint32_t *to, const int16_t *from, int32_t first, int32_t count,
                                                   const int32_t step, const int32_t plane) {
  to += first / 2;
  if (first % 2 != 0) {
    tinyet_plane_word_s16_dsp(to++, 0, tinyet_load_int16x2_dsp(from), plane);
    from += step;
    count--;
  }
  if (count > 1) {
    tinyet_plane_words_s16_dsp(to, from, count / 2, step, plane);
  }
  if (count % 2 != 0) {
    tinyet_plane_word_s16_dsp(to + count / 2, tinyet_load_int16x2_dsp(from + (count - 1) * step), 0, plane);
  }
}

/* One input row of two channels into the row `to` of their planes; what is outside the image stays. */
TINYET_DSP_INLINE void tinyet_plane_row_s16_dsp(uint32_t *to, const int16_t *from, const int32_t plane,
                                                const tinyet_depthwise_s16_shape_dsp s) {
  const int32_t d = s.dilation_u, reach = (s.out_u - 1) * s.stride_u + (s.kernel_u - 1) * d + 1;
  const int32_t end = reach < s.pad_u + s.in_u ? reach : s.pad_u + s.in_u;
  for (int32_t part = 0; part < d; part++) {
    const int32_t first = s.pad_u > part ? (s.pad_u - part + d - 1) / d : 0;
    const int32_t count = (end - part + d - 1) / d - first;
    if (count > 0) {
      tinyet_plane_values_s16_dsp(to + part * s.part / 2, from + (part + first * d - s.pad_u) * s.in_step_u, first,
                                  count, d * s.in_step_u, plane);
    }
  }
}

/* The tile of output rows from `top` on, of the two channels at `input`. */
TINYET_DSP_INLINE void tinyet_fill_planes_s16_dsp(uint32_t *planes, const int16_t *input, int32_t top,
                                                  const tinyet_depthwise_s16_shape_dsp s) {
  const int32_t row = tinyet_row_words_s16_dsp(s), rows = tinyet_tile_rows_s16_dsp(s), plane = rows * row;
  const int32_t kept = rows - s.tile * s.stride_v; /* rows that the next tile needs, too */
  int32_t r = 0;
  if (s.tile < s.out_v && kept > 0 && top > 0) {
    for (int32_t k = 0; k < 2; k++) {
      TINYET_DSP_UNKNOWN(k);
      tinyet_move_words_dsp(planes + k * plane, planes + k * plane + (rows - kept) * row, kept * row);
    }
    r = kept;
  }
  for (; r < rows; r++) {
    TINYET_DSP_UNKNOWN(r);
    const int32_t v = top * s.stride_v - s.pad_v + r;
    uint32_t *const to = planes + r * row;
    if ((uint32_t)v < (uint32_t)s.in_v) {
      tinyet_plane_row_s16_dsp(to, input + v * s.in_step_v, plane, s);
    } else if (s.tile < s.out_v) {
      tinyet_clear_dsp(to, row);
      tinyet_clear_dsp(to + plane, row);
    }
  }
}

#if TINYET_DSP_ASM
/* Two words, `at` words from an address: a literal. */
#define TINYET_DSP_TWO_OUTPUTS_S16(FIRST, NEXT)                                                            \
  __asm__ volatile(FIRST("0", "w0", "w1", "bias", "bias") NEXT("%c[row]", "w2", "w3", "a", "b")            \
                       NEXT("%c[row] * 2", "w4", "w5", "a", "b")                                           \
                   : [a] "=&r"(sums[0]), [b] "=&r"(sums[1]), [x] "=&r"(x), [y] "=&r"(y)                    \
                   : [p] "r"(p), [w0] "r"(w[0]), [w1] "r"(w[1]), [w2] "r"(w[2]), [w3] "r"(w[3]),           \
                     [w4] "r"(w[4]), [w5] "r"(w[5]), [bias] "r"(bias), [row] "i"(row), [at] "i"(at)        \
                   : "memory")
#define TINYET_DSP_ROW_OF_STRIDE_1(row, u, v, c, d)      \
  "ldrd %[x], %[y], [%[p], #(" row " + %c[at]) * 4]\n"   \
  "smlad %[a], %[x], %[" u "], %[" c "]\n"               \
  "smlatb %[b], %[x], %[" u "], %[" d "]\n"              \
  "smlabt %[a], %[y], %[" v "], %[a]\n"                  \
  "smlad %[b], %[y], %[" v "], %[b]\n"
#define TINYET_DSP_ROW_OF_STRIDE_2(row, u, v, c, d)      \
  "ldrd %[x], %[y], [%[p], #(" row " + %c[at]) * 4]\n"   \
  "smlad %[a], %[x], %[" u "], %[" c "]\n"               \
  "ldr %[x], [%[p], #(" row " + %c[at] + 2) * 4]\n"      \
  "smlad %[b], %[y], %[" u "], %[" d "]\n"               \
  "smlabt %[a], %[y], %[" v "], %[a]\n"                  \
  "smlabt %[b], %[x], %[" v "], %[b]\n"
#define TINYET_DSP_ROW_OF_ONE(row, u, v, c, d)           \
  "ldrd %[x], %[y], [%[p], #(" row " + %c[at]) * 4]\n"   \
  "smlad %[a], %[x], %[" u "], %[" c "]\n"               \
  "smlabt %[a], %[y], %[" v "], %[a]\n"
#endif

/* Two neighbouring sums, or one where `both` is 0, of the inputs `at` words behind p; row: words from kernel row to kernel row.
 * w: {w0, w1}, {w1, w2} of three rows. */
TINYET_DSP_INLINE void tinyet_three_rows_s16_dsp(int32_t sums[2], const uint32_t *p, const int32_t at, const uint32_t *w,
                                                 int32_t bias, const int32_t row, const int32_t stride,
                                                 const int32_t both) {
#if TINYET_DSP_ASM
  uint32_t x, y;
  if (!both) {
    TINYET_DSP_TWO_OUTPUTS_S16(TINYET_DSP_ROW_OF_ONE, TINYET_DSP_ROW_OF_ONE);
  } else if (stride == 1) {
    TINYET_DSP_TWO_OUTPUTS_S16(TINYET_DSP_ROW_OF_STRIDE_1, TINYET_DSP_ROW_OF_STRIDE_1);
  } else {
    TINYET_DSP_TWO_OUTPUTS_S16(TINYET_DSP_ROW_OF_STRIDE_2, TINYET_DSP_ROW_OF_STRIDE_2);
  }
#else
  for (int32_t i = 0; i < 1 + both; i++) {
    uint32_t sum = (uint32_t)bias;
    for (int32_t ky = 0; ky < 3; ky++) {
      for (int32_t tap = 0; tap < 3; tap++) {
        const int32_t value = i * stride + tap;
        const int32_t weight = tap == 0 ? tinyet_half_dsp(w[2 * ky], 0) : tinyet_half_dsp(w[2 * ky + 1], tap - 1);
        sum += (uint32_t)(weight * tinyet_half_dsp(p[at + ky * row + value / 2], value % 2));
      }
    }
    sums[i] = (int32_t)sum;
  }
#endif
}
#if TINYET_DSP_ASM
#undef TINYET_DSP_TWO_OUTPUTS_S16
#undef TINYET_DSP_ROW_OF_STRIDE_1
#undef TINYET_DSP_ROW_OF_STRIDE_2
#undef TINYET_DSP_ROW_OF_ONE
#endif

/* `count` output rows of one channel: `rows` is the first one's first input row in the plane. */
TINYET_DSP_INLINE void tinyet_depthwise_rows_s16_dsp(const uint32_t *rows, int16_t *out, const int32_t *stream,
                                                     int32_t count, const tinyet_depthwise_s16_shape_dsp s,
                                                     const tinyet_rounding_s16_dsp rounding) {
  const int32_t row = tinyet_row_words_s16_dsp(s), kernel_row = s.dilation_v * row, pairs = s.out_u / 2;
  const int32_t unroll = pairs % 4 == 0 ? 4 : (pairs % 3 == 0 ? 3 : (pairs % 2 == 0 ? 2 : 1));
  uint32_t w[6];
#pragma GCC unroll 3
  for (int32_t ky = 0; ky < 3; ky++) {
    const uint32_t odd = tinyet_odd_bytes_dsp((uint32_t)stream[ky]);
    w[2 * ky] = tinyet_even_bytes_dsp((uint32_t)stream[ky]);
    w[2 * ky + 1] = tinyet_high_int16x2_dsp(w[2 * ky], odd);
  }
  const int32_t bias = stream[3], multiplier = stream[4];
  int32_t sums[2];
  for (; count > 0; count--) {
    TINYET_DSP_UNKNOWN(count);
    const uint32_t *p = rows;
    int16_t *to = out;
    if (pairs > 0) {
      const uint32_t *const end = p + pairs * s.stride_u;
      do {
#pragma GCC unroll 4
        for (int32_t i = 0; i < unroll; i++) {
          tinyet_three_rows_s16_dsp(sums, p, i * s.stride_u, w, bias, kernel_row, s.stride_u, 1);
          tinyet_store_s16_dsp(to + 2 * i * s.out_step_u, tinyet_round_s16_dsp(sums[0], multiplier, rounding));
          tinyet_store_s16_dsp(to + (2 * i + 1) * s.out_step_u, tinyet_round_s16_dsp(sums[1], multiplier, rounding));
        }
        p += unroll * s.stride_u;
        to += 2 * unroll * s.out_step_u;
      } while (p != end);
    }
    if (s.out_u % 2 != 0) {
      tinyet_three_rows_s16_dsp(sums, p, 0, w, bias, kernel_row, s.stride_u, 0);
      tinyet_store_s16_dsp(to, tinyet_round_s16_dsp(sums[0], multiplier, rounding));
    }
    rows += s.stride_v * row;
    out += s.out_step_v;
  }
}

/* scratch: 8 * tinyet_tile_rows_s16_dsp * tinyet_row_words_s16_dsp bytes. Needs two channels; of an odd number one is computed
 * twice. */
TINYET_DSP_INLINE void tinyet_depthwise_s16_chw_3x3_dsp(const int16_t *input, int16_t *output, void *scratch,
                                                        const int32_t *weights, const tinyet_depthwise_s16_shape_dsp s,
                                                        const tinyet_rounding_s16_dsp rounding) {
  const int32_t plane = tinyet_tile_rows_s16_dsp(s) * tinyet_row_words_s16_dsp(s);
  uint32_t *const planes = (uint32_t *)scratch;
  tinyet_clear_dsp(planes, 2 * plane);
  for (int32_t n = 0; n < s.batch; n++) {
    for (int32_t channel = 0; channel < s.channels; channel += 2) {
      if (s.channels % 2 != 0 && channel > s.channels - 2) {
        channel = s.channels - 2;
      }
      for (int32_t top = 0; top < s.out_v; top += s.tile) {
        tinyet_fill_planes_s16_dsp(planes, input + channel, top, s);
        for (int32_t k = 0; k < 2; k++) {
          TINYET_DSP_UNKNOWN(k);
          tinyet_depthwise_rows_s16_dsp(planes + k * plane, output + top * s.out_step_v + channel + k,
                                        weights + (channel + k) * TINYET_DSP_DEPTHWISE_WORDS,
                                        tinyet_rows_left_s16_dsp(top, s), s, rounding);
        }
      }
    }
    input += s.in_u * s.in_v * s.channels;
    output += s.out_u * s.out_v * s.channels;
  }
}

/* ---- any kernel ---- */

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

/* `count` outputs, `out_step` values apart: `from` is the first one's first value, `step` values apart. */
TINYET_DSP_INLINE void tinyet_depthwise_outputs_s16_dsp(const int16_t *from, int16_t *out, const uint32_t *taps,
                                                        int32_t bias, int32_t multiplier, const int32_t count,
                                                        const int32_t step, const int32_t out_step,
                                                        const tinyet_depthwise_s16_shape_dsp s,
                                                        const tinyet_rounding_s16_dsp rounding) {
  const int32_t pairs = (s.kernel_u + 1) / 2, rest = pairs % TINYET_DSP_TAPS;
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
    from += 2 * s.dilation_v * tinyet_row_words_s16_dsp(s);
  }
#pragma GCC unroll 4
  for (int32_t i = 0; i < count; i++) {
    tinyet_store_s16_dsp(out + i * out_step, tinyet_round_s16_dsp(sums[i], multiplier, rounding));
  }
}

/* One output row of one channel: `row` is its first input row in the plane. */
TINYET_DSP_INLINE void tinyet_depthwise_row_s16_dsp(const int16_t *row, int16_t *out, const uint32_t *taps, int32_t bias,
                                                    int32_t multiplier, const tinyet_depthwise_s16_shape_dsp s,
                                                    const tinyet_rounding_s16_dsp rounding) {
  const int32_t runs = s.apart < s.out_u ? s.apart : s.out_u, block = s.out_u / runs < 4 ? s.out_u / runs : 4;
  for (int32_t run = 0; run < runs; run++) {
    const int16_t *const from = row + run * s.stride_u % s.dilation_u * s.part + run * s.stride_u / s.dilation_u;
    const int32_t count = (s.out_u - run + s.apart - 1) / s.apart;
    for (int32_t i = 0; i < count; i += block) {
      if (count % block != 0 && i > count - block) {
        i = count - block; /* some are computed twice */
      }
      tinyet_depthwise_outputs_s16_dsp(from + i * s.between, out + (run + i * s.apart) * s.out_step_u, taps, bias,
                                       multiplier, block, s.between, s.apart * s.out_step_u, s, rounding);
    }
  }
}

/* scratch: the planes as for 3x3, and 8 bytes for each word of an output channel's taps. Channels as for 3x3. */
TINYET_DSP_INLINE void tinyet_depthwise_s16_chw_dsp(const int16_t *input, int16_t *output, void *scratch,
                                                    const int32_t *weights, const tinyet_depthwise_s16_shape_dsp s,
                                                    const tinyet_rounding_s16_dsp rounding) {
  const int32_t row = tinyet_row_words_s16_dsp(s), plane = tinyet_tile_rows_s16_dsp(s) * row;
  const int32_t words = (s.kernel_v * ((s.kernel_u + 1) / 2) + 1) / 2; /* of an output channel's taps */
  uint32_t *const planes = (uint32_t *)scratch, *const taps = planes + 2 * plane;
  tinyet_clear_dsp(planes, 2 * plane);
  for (int32_t n = 0; n < s.batch; n++) {
    for (int32_t channel = 0; channel < s.channels; channel += 2) {
      if (s.channels % 2 != 0 && channel > s.channels - 2) {
        channel = s.channels - 2;
      }
      for (int32_t top = 0; top < s.out_v; top += s.tile) {
        tinyet_fill_planes_s16_dsp(planes, input + channel, top, s);
        for (int32_t k = 0; k < 2 * s.multiplier; k++) {
          TINYET_DSP_UNKNOWN(k);
          const int32_t *w = weights + (channel * s.multiplier + k) * (words + 2);
          for (int32_t i = 0; i < words; i++) {
            taps[2 * i] = tinyet_even_bytes_dsp((uint32_t)w[i]);
            taps[2 * i + 1] = tinyet_odd_bytes_dsp((uint32_t)w[i]);
          }
          const uint32_t *rows = planes + k / s.multiplier * plane;
          int16_t *out = output + top * s.out_step_v + channel * s.multiplier + k;
          for (int32_t v = tinyet_rows_left_s16_dsp(top, s); v > 0; v--) {
            TINYET_DSP_UNKNOWN(v);
            tinyet_depthwise_row_s16_dsp((const int16_t *)rows, out, taps, w[words], w[words + 1], s, rounding);
            rows += s.stride_v * row;
            out += s.out_step_v;
          }
        }
      }
    }
    input += s.in_u * s.in_v * s.channels;
    output += s.out_u * s.out_v * s.channels * s.multiplier;
  }
}

#endif
