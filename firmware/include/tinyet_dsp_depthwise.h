/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised int8 depthwise 3x3 convolution for cores with DSP instructions: see tinyet_dsp.h.
 *
 * Two channels at a time are taken out of the image and widened into two int16 planes in scratch. Along the axis u, which is
 * contiguous in a plane, two taps are one multiply instruction; u is the width or the height of the image, whichever is
 * cheaper, and v is the other axis. Word j of a plane's row holds the inputs u = 2 * j - pad_u and the one behind it. The
 * planes hold the rows of a strip of output rows; strips share rows, which are moved.
 *
 * The weight stream, in words, for each channel:
 *   three kernel rows along u: bytes {w0, w1, w1, w2} | bias, shifted as sums are | multiplier | offset | shift */
#ifndef TINYET_DSP_DEPTHWISE_H
#define TINYET_DSP_DEPTHWISE_H

#include "tinyet_dsp.h"

enum { TINYET_DSP_DEPTHWISE_WORDS = 7 };

/* Sizes in pixels, steps in bytes; literals. */
typedef struct {
  int32_t batch, channels;
  int32_t in_u, in_v, in_step_u, in_step_v;
  int32_t out_u, out_v, out_step_u, out_step_v;
  int32_t stride_u, stride_v, dilation_v; /* stride_u is 1 or 2 */
  int32_t pad_u, pad_v;                   /* before the first pixel; pad_u is at most 2 */
  int32_t zero_point;
  int32_t strip; /* output rows */
} tinyet_dsp_depthwise;

/* Words of a plane's row: all that the last two outputs look at. */
TINYET_DSP_INLINE int32_t tinyet_dsp_row_words(const tinyet_dsp_depthwise s) {
  return s.stride_u == 1 ? (s.out_u + 1) / 2 + 1 : s.out_u + 1;
}

/* Input rows of a strip. */
TINYET_DSP_INLINE int32_t tinyet_dsp_strip_rows(const tinyet_dsp_depthwise s) {
  return (s.strip - 1) * s.stride_v + 2 * s.dilation_v + 1;
}

typedef struct {
  int32_t multiplier, offset;
} tinyet_dsp_factors;

/* The weights of one channel as pairs, {w0, w1} and {w1, w2} of each kernel row, and the bias; shifted. */
typedef struct {
  uint32_t first[3], second[3];
  int32_t bias, shift;
  tinyet_dsp_factors factors;
} tinyet_dsp_depthwise_channel;

TINYET_DSP_INLINE void tinyet_dsp_depthwise_unpack(tinyet_dsp_depthwise_channel *c, const int32_t *w,
                                                   const tinyet_dsp_rounding rounding) {
  const uint32_t before = (uint32_t)tinyet_dsp_before(w[6], rounding);
  const uint32_t keep = ~(((UINT32_C(1) << before) - 1u) << 16); /* without what leaves the lower half */
  for (int32_t row = 0; row < 3; row++) {
    c->first[row] = (tinyet_dsp_even((uint32_t)w[row]) << before) & keep;
    c->second[row] = (tinyet_dsp_odd((uint32_t)w[row]) << before) & keep;
  }
  c->bias = w[3];
  c->factors.multiplier = w[4];
  c->factors.offset = w[5];
  c->shift = w[6];
}

#if TINYET_DSP_ASM
/* The sums a, b of two neighbouring outputs; p moves on to the next two. */
#define TINYET_DSP_ROW_1(x_at, w0, w1, a, b)                          \
  "ldrd %[x], %[y], [%[p]" x_at "\n"                                  \
  "smlad %[a], %[x], %[" w0 "], %[" a "]\n"                           \
  "smlatb %[b], %[x], %[" w0 "], %[" b "]\n"                          \
  "smlabt %[a], %[y], %[" w1 "], %[a]\n"                              \
  "smlad %[b], %[y], %[" w1 "], %[b]\n"
#define TINYET_DSP_ROW_2(x_at, z_at, w0, w1, a, b)                    \
  "ldrd %[x], %[y], [%[p]" x_at "\n"                                  \
  "smlad %[a], %[x], %[" w0 "], %[" a "]\n"                           \
  "ldr %[x], [%[p]" z_at "\n"                                         \
  "smlad %[b], %[y], %[" w0 "], %[" b "]\n"                           \
  "smlabt %[a], %[y], %[" w1 "], %[a]\n"                              \
  "smlabt %[b], %[x], %[" w1 "], %[b]\n"
#define TINYET_DSP_TWO_OUTPUTS_1                                                      \
  TINYET_DSP_ROW_1("], #4", "f0", "s0", "bias", "bias")                               \
  TINYET_DSP_ROW_1(", #%c[row] - 4]", "f1", "s1", "a", "b")                           \
  TINYET_DSP_ROW_1(", #%c[row] * 2 - 4]", "f2", "s2", "a", "b")
#define TINYET_DSP_TWO_OUTPUTS_2                                                      \
  TINYET_DSP_ROW_2("], #8", "]", "f0", "s0", "bias", "bias")                          \
  TINYET_DSP_ROW_2(", #%c[row] - 8]", ", #%c[row]]", "f1", "s1", "a", "b")            \
  TINYET_DSP_ROW_2(", #%c[row] * 2 - 8]", ", #%c[row] * 2]", "f2", "s2", "a", "b")
#define TINYET_DSP_ROW_3(x_at, w0, w1, a)    \
  "ldrd %[x], %[y], [%[p]" x_at "\n"         \
  "smlad %[a], %[x], %[" w0 "], %[" a "]\n"  \
  "smlabt %[a], %[y], %[" w1 "], %[a]\n"
#define TINYET_DSP_WEIGHTS(c)                                                                                     \
  [f0] "r"((c)->first[0]), [s0] "r"((c)->second[0]), [f1] "r"((c)->first[1]), [s1] "r"((c)->second[1]),           \
      [f2] "r"((c)->first[2]), [s2] "r"((c)->second[2]), [bias] "r"((c)->bias)
#endif

/* One output row of one channel: `rows` is its first input row in the plane, kernel rows lie `row` words apart. */
TINYET_DSP_INLINE void tinyet_dsp_depthwise_row(const uint32_t *rows, int8_t *out, const tinyet_dsp_depthwise_channel *c,
                                                const int32_t row, const tinyet_dsp_depthwise s,
                                                const tinyet_dsp_rounding rounding) {
  const int32_t pairs = s.out_u / 2;
#if TINYET_DSP_ASM
  const uint32_t *p = rows;
  int32_t a, b;
  uint32_t x, y;
  if (pairs > 0 && rounding.form == TINYET_DSP_ONE_SIDED && rounding.low == -128 && rounding.high == 127) {
    const int32_t unroll = pairs % 4 == 0 ? 4 : (pairs % 3 == 0 ? 3 : (pairs % 2 == 0 ? 2 : 1));
    const uint32_t *const end = rows + pairs * s.stride_u;
    int8_t *o = out;
#define TINYET_DSP_ROW_LOOP(two_outputs)                                                                            \
  __asm__ volatile("1:\n"                                                                                           \
                   ".rept %c[unroll]\n" two_outputs                                                                 \
                   "ldrd %[x], %[y], %[factors]\n"                                                                  \
                   "smmla %[a], %[a], %[x], %[y]\n"                                                                 \
                   "smmla %[b], %[b], %[x], %[y]\n"                                                                 \
                   "ssat %[a], #8, %[a], asr %[exponent]\n"                                                         \
                   "ssat %[b], #8, %[b], asr %[exponent]\n"                                                         \
                   "strb %[b], [%[o], %[step]]\n"                                                                   \
                   ".if %c[step] < 128\n"                                                                           \
                   "strb %[a], [%[o]], #2 * %c[step]\n"                                                             \
                   ".else\n"                                                                                        \
                   "strb %[a], [%[o]]\n"                                                                            \
                   "addw %[o], %[o], #2 * %c[step]\n"                                                               \
                   ".endif\n"                                                                                       \
                   ".endr\n"                                                                                        \
                   ".if %c[turns] > 1\n"                                                                            \
                   "ldr %[x], %[end]\n"                                                                             \
                   "cmp %[p], %[x]\n"                                                                               \
                   "bne 1b\n"                                                                                       \
                   ".endif\n"                                                                                       \
                   : [p] "+r"(p), [o] "+r"(o), [a] "=&r"(a), [b] "=&r"(b), [x] "=&r"(x), [y] "=&r"(y)               \
                   : TINYET_DSP_WEIGHTS(c), [end] "m"(end), [factors] "m"((c)->factors), [row] "i"(4 * row),        \
                     [step] "i"(s.out_step_u), [exponent] "i"(rounding.exponent), [unroll] "i"(unroll),             \
                     [turns] "i"(pairs / unroll)                                                                    \
                   : "memory", "cc")
    if (s.stride_u == 1) {
      TINYET_DSP_ROW_LOOP(TINYET_DSP_TWO_OUTPUTS_1);
    } else {
      TINYET_DSP_ROW_LOOP(TINYET_DSP_TWO_OUTPUTS_2);
    }
#undef TINYET_DSP_ROW_LOOP
    out = o;
  } else {
    for (const uint32_t *const end = rows + pairs * s.stride_u; p != end;) {
#define TINYET_DSP_ROW_STEP(two_outputs)                                                                  \
  __asm__(two_outputs                                                                                     \
          : [p] "+r"(p), [a] "=&r"(a), [b] "=&r"(b), [x] "=&r"(x), [y] "=&r"(y)                           \
          : TINYET_DSP_WEIGHTS(c), [row] "i"(4 * row)                                                     \
          : "memory")
      if (s.stride_u == 1) {
        TINYET_DSP_ROW_STEP(TINYET_DSP_TWO_OUTPUTS_1);
      } else {
        TINYET_DSP_ROW_STEP(TINYET_DSP_TWO_OUTPUTS_2);
      }
#undef TINYET_DSP_ROW_STEP
      out[0] = tinyet_dsp_round_shifted(a, c->factors.multiplier, c->factors.offset, c->shift, rounding);
      out[s.out_step_u] = tinyet_dsp_round_shifted(b, c->factors.multiplier, c->factors.offset, c->shift, rounding);
      out += 2 * s.out_step_u;
    }
  }
  if (s.out_u & 1) {
    __asm__(TINYET_DSP_ROW_3("]", "f0", "s0", "bias") TINYET_DSP_ROW_3(", #%c[row]]", "f1", "s1", "a")
                TINYET_DSP_ROW_3(", #%c[row] * 2]", "f2", "s2", "a")
            : [a] "=&r"(a), [x] "=&r"(x), [y] "=&r"(y)
            : TINYET_DSP_WEIGHTS(c), [p] "r"(p), [row] "i"(4 * row)
            : "memory");
    out[0] = tinyet_dsp_round_shifted(a, c->factors.multiplier, c->factors.offset, c->shift, rounding);
  }
#else
  (void)pairs;
  for (int32_t u = 0; u < s.out_u; u++, out += s.out_step_u) {
    uint32_t sum = (uint32_t)c->bias;
    for (int32_t ky = 0; ky < 3; ky++) {
      for (int32_t tap = 0; tap < 3; tap++) {
        const int32_t at = u * s.stride_u + tap;
        const int32_t weight = tap < 2 ? tinyet_dsp_half(c->first[ky], tap) : tinyet_dsp_half(c->second[ky], 1);
        sum += (uint32_t)(weight * tinyet_dsp_half(rows[ky * row + at / 2], at % 2));
      }
    }
    *out = tinyet_dsp_round_shifted((int32_t)sum, c->factors.multiplier, c->factors.offset, c->shift, rounding);
  }
#endif
}

/* Two pixels of two channels into two planes. */
TINYET_DSP_INLINE void tinyet_dsp_plane_word(uint32_t *to, uint32_t first, uint32_t second, const int32_t plane) {
  const uint32_t four = tinyet_dsp_low_halves(first, second);
  to[0] = tinyet_dsp_even(four);
  to[plane] = tinyet_dsp_odd(four);
}

/* One input row of two channels into the row `to` of two planes; what is outside the image stays. */
TINYET_DSP_INLINE void tinyet_dsp_plane_row(uint32_t *to, const int8_t *from, const int32_t plane, uint32_t blank,
                                            const tinyet_dsp_depthwise s) {
  const int32_t seen = (s.out_u - 1) * s.stride_u + 3 - s.pad_u;
  const int32_t odd = s.pad_u & 1, count = (seen < s.in_u ? seen : s.in_u) - odd;
  to += s.pad_u / 2;
  if (odd) {
    tinyet_dsp_plane_word(to++, blank, tinyet_dsp_load_half(from), plane);
    from += s.in_step_u;
  }
#pragma GCC unroll 4
  for (int32_t i = 0; i < count / 2; i++) {
    tinyet_dsp_plane_word(to++, tinyet_dsp_load_half(from), tinyet_dsp_load_half(from + s.in_step_u), plane);
    from += 2 * s.in_step_u;
  }
  if (count & 1) {
    tinyet_dsp_plane_word(to, tinyet_dsp_load_half(from), blank, plane);
  }
}

/* scratch: 8 * tinyet_dsp_strip_rows * tinyet_dsp_row_words bytes. Needs two channels; of an odd number, the last but one is
 * computed twice. */
TINYET_DSP_INLINE void tinyet_dsp_depthwise_3x3(const int8_t *input, int8_t *output, void *scratch,
                                                const int32_t *weights, const tinyet_dsp_depthwise s,
                                                const tinyet_dsp_rounding rounding) {
  const int32_t row = tinyet_dsp_row_words(s), rows = tinyet_dsp_strip_rows(s), plane = rows * row;
  const int32_t kept = rows - s.strip * s.stride_v; /* rows that the next strip needs, too */
  const uint32_t blank = tinyet_dsp_both(s.zero_point);
  const uint32_t blank_half = ((uint32_t)s.zero_point & 0xffu) * 0x101u;
  uint32_t *const planes = (uint32_t *)scratch;
  for (int32_t i = 0; i < 2 * plane; i++) {
    planes[i] = blank;
  }
  for (int32_t n = 0; n < s.batch; n++) {
    for (int32_t channel = 0; channel < s.channels; channel += 2) {
      if (s.channels % 2 != 0 && channel == s.channels - 1) {
        channel--;
      }
      for (int32_t top = 0; top < s.out_v; top += s.strip) {
        int32_t r = 0;
        if (s.strip < s.out_v && kept > 0 && top > 0) {
          for (int32_t i = 0; i < kept * row; i++) {
            planes[i] = planes[i + (rows - kept) * row];
            planes[plane + i] = planes[plane + i + (rows - kept) * row];
          }
          r = kept;
        }
        for (; r < rows; r++) {
          const int32_t v = top * s.stride_v - s.pad_v + r;
          uint32_t *const to = planes + r * row;
          if ((uint32_t)v < (uint32_t)s.in_v) {
            tinyet_dsp_plane_row(to, input + v * s.in_step_v + channel, plane, blank_half, s);
          } else if (s.strip < s.out_v) {
            for (int32_t i = 0; i < row; i++) {
              to[i] = to[plane + i] = blank;
            }
          }
        }
        const int32_t left = s.out_v - top;
        const int32_t count = s.out_v % s.strip == 0 || left > s.strip ? s.strip : left;
        for (int32_t k = 0; k < 2; k++) {
          TINYET_DSP_UNKNOWN(k);
          const int32_t *const w = weights + (channel + k) * TINYET_DSP_DEPTHWISE_WORDS;
          tinyet_dsp_depthwise_channel c;
          tinyet_dsp_depthwise_unpack(&c, w, rounding);
          const uint32_t *p = planes + k * plane;
          int8_t *out = output + top * s.out_step_v + channel + k;
          for (int32_t v = 0; v < count; v++) {
            tinyet_dsp_depthwise_row(p, out, &c, s.dilation_v * row, s, rounding);
            p += s.stride_v * row;
            out += s.out_step_v;
          }
        }
      }
    }
    input += s.in_u * s.in_v * s.channels;
    output += s.out_u * s.out_v * s.channels;
  }
}

#endif
