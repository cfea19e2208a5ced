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

/* One channel as its row loop loads it. The weights are pairs, {w0, w1} and {w1, w2} of each kernel row, shifted. */
typedef struct {
  uint32_t weights[6];
  int32_t bias, multiplier, offset;
  const uint32_t *end, *rows;
  int32_t shift;
} tinyet_dsp_depthwise_channel;

TINYET_DSP_INLINE void tinyet_dsp_depthwise_unpack(tinyet_dsp_depthwise_channel *c, const int32_t *w,
                                                   const tinyet_dsp_rounding rounding) {
  const uint32_t before = (uint32_t)tinyet_dsp_before(w[6], rounding);
  const uint32_t keep = ~(((UINT32_C(1) << before) - 1u) << 16); /* without what leaves the lower half */
  for (int32_t row = 0; row < 3; row++) {
    c->weights[2 * row] = (tinyet_dsp_even((uint32_t)w[row]) << before) & keep;
    c->weights[2 * row + 1] = (tinyet_dsp_odd((uint32_t)w[row]) << before) & keep;
  }
  c->bias = w[3];
  c->multiplier = w[4];
  c->offset = w[5];
  c->shift = w[6];
}

#if TINYET_DSP_ASM
/* The row loop has its registers by name, since the compiler does not always find so many:
 *   r2 ... r6, r8   weights    r9   bias    r10, r11   sums of two neighbouring outputs    r12, lr   inputs
 * and on the stack multiplier, offset, end of the loop, shift. Kernel row `at` for two outputs, strides 1 and 2: */
#define TINYET_DSP_ROW_1(at, w0, w1, a, b) \
  "ldrd r12, lr, [%[p]" at "\n"            \
  "smlad r10, r12, " w0 ", " a "\n"        \
  "smlatb r11, r12, " w0 ", " b "\n"       \
  "smlabt r10, lr, " w1 ", r10\n"          \
  "smlad r11, lr, " w1 ", r11\n"
#define TINYET_DSP_ROW_2(at, next, w0, w1, a, b) \
  "ldrd r12, lr, [%[p]" at "\n"                  \
  "smlad r10, r12, " w0 ", " a "\n"              \
  "ldr r12, [%[p]" next "\n"                     \
  "smlad r11, lr, " w0 ", " b "\n"               \
  "smlabt r10, lr, " w1 ", r10\n"                \
  "smlabt r11, r12, " w1 ", r11\n"
/* For the last one of an odd number of outputs. */
#define TINYET_DSP_ROW_LAST(at, w0, w1, a) \
  "ldrd r12, lr, [%[p]" at "\n"            \
  "smlad r10, r12, " w0 ", " a "\n"        \
  "smlabt r10, lr, " w1 ", r10\n"
#define TINYET_DSP_TWO_OUTPUTS                                                                     \
  ".if %c[stride] == 1\n" TINYET_DSP_ROW_1("], #4", "r2", "r3", "r9", "r9")                        \
      TINYET_DSP_ROW_1(", #%c[row] * 4 - 4]", "r4", "r5", "r10", "r11")                            \
          TINYET_DSP_ROW_1(", #%c[row] * 8 - 4]", "r6", "r8", "r10",                               \
                           "r11") ".else\n" TINYET_DSP_ROW_2("], #8", "]", "r2", "r3", "r9", "r9") \
              TINYET_DSP_ROW_2(", #%c[row] * 4 - 8]", ", #%c[row] * 4]", "r4", "r5", "r10", "r11") \
                  TINYET_DSP_ROW_2(", #%c[row] * 8 - 8]", ", #%c[row] * 8]", "r6", "r8", "r10", "r11") ".endif\n"
#define TINYET_DSP_FINISH(sum)                   \
  ".if %c[one_sided]\n"                          \
  "smmla " sum ", " sum ", r12, lr\n"            \
  "ssat " sum ", #8, " sum ", asr %[exponent]\n" \
  ".else\n"                                      \
  "ldrd r12, lr, [sp]\n"                         \
  "smmlar lr, " sum ", r12, lr\n"                \
  "ldr r12, [sp, #12]\n"                         \
  "add " sum ", lr, " sum ", asr #31\n"          \
  "asr " sum ", " sum ", r12\n"                  \
  "ssat " sum ", #8, " sum "\n"                  \
  ".endif\n"                                     \
  ".if %c[low] > -128\n"                         \
  "cmp " sum ", %[low]\n"                        \
  "it lt\n"                                      \
  "movlt " sum ", %[low]\n"                      \
  ".endif\n"                                     \
  ".if %c[high] < 127\n"                         \
  "cmp " sum ", %[high]\n"                       \
  "it gt\n"                                      \
  "movgt " sum ", %[high]\n"                     \
  ".endif\n"
#endif

/* One output row of one channel: `rows` is its first input row in the plane, kernel rows lie `row` words apart. */
TINYET_DSP_INLINE void tinyet_dsp_depthwise_row(const uint32_t *rows, int8_t *out, tinyet_dsp_depthwise_channel *c,
                                                const int32_t row, const tinyet_dsp_depthwise s,
                                                const tinyet_dsp_rounding rounding) {
#if TINYET_DSP_ASM
  if (rounding.form != TINYET_DSP_PLAIN) {
    const int32_t pairs = s.out_u / 2;
    const int32_t unroll = pairs % 4 == 0 ? 4 : (pairs % 3 == 0 ? 3 : (pairs % 2 == 0 ? 2 : 1));
    c->rows = rows;
    c->end = rows + pairs * s.stride_u;
    const void *p = c;
    __asm__ volatile(
        "ldr r12, [%[p], #44]\n"
        "push {r12}\n"
        "ldm %[p], {r2, r3, r4, r5, r6, r8, r9, r10, r11, r12, lr}\n"
        "push {r10, r11, r12}\n"
        "mov %[p], lr\n"
        ".if %c[pairs]\n"
        "1:\n"
        ".rept %c[unroll]\n" TINYET_DSP_TWO_OUTPUTS ".if %c[one_sided]\n"
        "ldrd r12, lr, [sp]\n"
        ".endif\n" TINYET_DSP_FINISH("r10")
            TINYET_DSP_FINISH("r11") "strb r11, [%[out], %[step]]\n"
                                     ".if %c[step] < 128\n"
                                     "strb r10, [%[out]], #2 * %c[step]\n"
                                     ".else\n"
                                     "strb r10, [%[out]]\n"
                                     "addw %[out], %[out], #2 * %c[step]\n"
                                     ".endif\n"
                                     ".endr\n"
                                     ".if %c[pairs] > %c[unroll]\n"
                                     "ldr r12, [sp, #8]\n"
                                     "cmp %[p], r12\n"
                                     "bne 1b\n"
                                     ".endif\n"
                                     ".endif\n"
                                     ".if %c[odd]\n" TINYET_DSP_ROW_LAST("]", "r2", "r3", "r9")
                                         TINYET_DSP_ROW_LAST(", #%c[row] * 4]", "r4", "r5", "r10") TINYET_DSP_ROW_LAST(
                                             ", #%c[row] * 8]", "r6", "r8",
                                             "r10") ".if %c[one_sided]\n"
                                                    "ldrd r12, lr, [sp]\n"
                                                    ".endif\n" TINYET_DSP_FINISH("r10") "strb r10, [%[out]]\n"
                                                                                        ".endif\n"
                                                                                        "add sp, sp, #16\n"
        : [p] "+r"(p), [out] "+r"(out)
        : [row] "i"(row), [stride] "i"(s.stride_u), [step] "i"(s.out_step_u), [pairs] "i"(pairs), [unroll] "i"(unroll),
          [odd] "i"(s.out_u % 2), [one_sided] "i"(rounding.form == TINYET_DSP_ONE_SIDED),
          [exponent] "i"(rounding.form == TINYET_DSP_ONE_SIDED ? rounding.exponent : 1), [low] "i"(rounding.low),
          [high] "i"(rounding.high)
        : "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "memory", "cc");
    return;
  }
#endif
  for (int32_t u = 0; u < s.out_u; u++, out += s.out_step_u) {
    uint32_t sum = (uint32_t)c->bias;
    for (int32_t ky = 0; ky < 3; ky++) {
      for (int32_t tap = 0; tap < 3; tap++) {
        const int32_t at = u * s.stride_u + tap;
        const int32_t weight = tinyet_dsp_half(c->weights[2 * ky + tap / 2], tap == 1);
        const int32_t last = tinyet_dsp_half(c->weights[2 * ky + 1], 1);
        sum += (uint32_t)((tap < 2 ? weight : last) * tinyet_dsp_half(rows[ky * row + at / 2], at % 2));
      }
    }
    *out = tinyet_dsp_round_shifted((int32_t)sum, c->multiplier, c->offset, c->shift, rounding);
  }
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
