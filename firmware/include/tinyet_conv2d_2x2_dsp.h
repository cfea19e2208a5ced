/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised int8 convolutions of one group with int16 weights, 2x2: two pixels by two channels at a time: see tinyet_dsp.h.
 *
 * Two pairs of input values of both pixels are one load, as are their weights for both channels, so that eight products need
 * two loads, where four pixels by two channels (tinyet_conv2d_dsp.h) need three: that one is for cores whose loads cost by
 * the word.
 *
 * Inputs lie in scratch as pairs of neighbouring bytes of a kernel row (tinyet_widen_dsp), where it is dilated of each tap;
 * for each pair a word of both pixels. Where such bytes are odd in number, the last one is paired with that of the next. The
 * weight stream, in words, for each pair of output channels a, b (the last pair
 * overlaps the one before where out_c is odd):
 *   bias a, b | for each pair of input values, filled up to an even number: its weights for a, and for b |
 *   multiplier a, b | offset a, b | shift a, b, which are missing where the rounding is one-sided
 * Weights and bias have the shift before the multiplication (tinyet_before_dsp) in them. */
#ifndef TINYET_CONV2D_2X2_DSP_H
#define TINYET_CONV2D_2X2_DSP_H

#include "tinyet_conv2d_dsp.h"

/* Up to so many steps of straight code for two channels, there are four channels in a turn. */
enum { TINYET_DSP_TOGETHER = 8 };

#if TINYET_DSP_ASM
/* Four values of each of two pixels. */
#define TINYET_DSP_WIDEN_TWO         \
  "ldr.w r4, [%[a]], #4\n"           \
  "ldr.w r5, [%[b]], #4\n"           \
  "sxtb16 r2, r4\n"                  \
  "sxtb16 r3, r5\n"                  \
  "sxtb16 r4, r4, ror #8\n"          \
  "sxtb16 r5, r5, ror #8\n"          \
  "stmia.w %[to]!, {r2, r3, r4, r5}\n"
/* Inputs at r7, weights at r0, sums a0, a1, b0, b1 in r1 … r4. */
#define TINYET_DSP_TWO_PAIRS(A, B)         \
  "ldmia.w r7!, {r5, r6, r8, r9}\n"        \
  "ldmia.w r0!, {r10, r11, r12, lr}\n"     \
  "smlad r1, r10, r5, " A "\n"             \
  "smlad r3, r11, r5, " B "\n"             \
  "smlad r2, r10, r6, r2\n"                \
  "smlad r4, r11, r6, r4\n"                \
  "smlad r1, r12, r8, r1\n"                \
  "smlad r3, lr, r8, r3\n"                 \
  "smlad r2, r12, r9, r2\n"                \
  "smlad r4, lr, r9, r4\n"
#define TINYET_DSP_TWO_ONE_SIDED            \
  "ldmia.w r0!, {r5, r6, r8, r9}\n"         \
  "smmla r1, r1, r5, r8\n"                  \
  "smmla r2, r2, r5, r8\n"                  \
  "smmla r3, r3, r6, r9\n"                  \
  "smmla r4, r4, r6, r9\n"                  \
  "ssat r1, #8, r1, asr #%c[exponent]\n"     \
  "ssat r2, #8, r2, asr #%c[exponent]\n"     \
  "ssat r3, #8, r3, asr #%c[exponent]\n"     \
  "ssat r4, #8, r4, asr #%c[exponent]\n"
#define TINYET_DSP_TWO_TWO_SIDED_SUM(A, M, O, S) \
  "add " O ", " O ", " A ", asr #31\n"           \
  "smmlar " A ", " A ", " M ", " O "\n"          \
  "asr " A ", " A ", " S "\n"                    \
  "ssat " A ", #8, " A "\n"
#define TINYET_DSP_TWO_TWO_SIDED                                      \
  "ldmia.w r0!, {r5, r6, r8, r9, r10, r11}\n"                         \
  "mov r12, r8\n"                                                     \
  "mov lr, r9\n"                                                      \
  TINYET_DSP_TWO_TWO_SIDED_SUM("r1", "r5", "r8", "r10")               \
  TINYET_DSP_TWO_TWO_SIDED_SUM("r2", "r5", "r12", "r10")              \
  TINYET_DSP_TWO_TWO_SIDED_SUM("r3", "r6", "r9", "r11")               \
  TINYET_DSP_TWO_TWO_SIDED_SUM("r4", "r6", "lr", "r11")
/* One pixel: two or four pairs of input values at r7, weights at r0, sums a, b in r1 and r3. */
#define TINYET_DSP_ONE_PRODUCTS(X, Y)      \
  "ldmia.w r0!, {r8, r9, r10, r11}\n"      \
  "smlad r1, r8, " X ", r1\n"              \
  "smlad r3, r9, " X ", r3\n"              \
  "smlad r1, r10, " Y ", r1\n"             \
  "smlad r3, r11, " Y ", r3\n"
#define TINYET_DSP_ONE_PAIRS                                                                          \
  ".rept %c[unroll] / 2\n"                                                                            \
  "ldmia.w r7!, {r2, r4, r5, r6}\n" TINYET_DSP_ONE_PRODUCTS("r2", "r4") TINYET_DSP_ONE_PRODUCTS("r5", "r6") \
  ".endr\n"                                                                                           \
  ".if %c[unroll] & 1\n"                                                                              \
  "ldrd r5, r6, [r7], #8\n" TINYET_DSP_ONE_PRODUCTS("r5", "r6")                                       \
  ".endif\n"
#define TINYET_DSP_ONE_ONE_SIDED           \
  "ldmia.w r0!, {r5, r6, r8, r9}\n"        \
  "smmla r1, r1, r5, r8\n"                 \
  "smmla r3, r3, r6, r9\n"                 \
  "ssat r1, #8, r1, asr #%c[exponent]\n"   \
  "ssat r3, #8, r3, asr #%c[exponent]\n"
#define TINYET_DSP_ONE_TWO_SIDED                            \
  "ldmia.w r0!, {r5, r6, r8, r9, r10, r11}\n"               \
  TINYET_DSP_TWO_TWO_SIDED_SUM("r1", "r5", "r8", "r10")     \
  TINYET_DSP_TWO_TWO_SIDED_SUM("r3", "r6", "r9", "r11")
/* On the stack: inputs, their end, output, where that ends. */
#define TINYET_DSP_TWO_ENTER            \
  "push {r0, r7}\n"                     \
  "mov r12, %[p]\n"                     \
  "ldmia.w r12, {r0, r1, r2, r3, r4}\n" \
  "push {r1, r2, r3, r4}\n"             \
  "1:\n"
#define TINYET_DSP_TWO_LEAVE \
  "str r5, [sp, #8]\n"       \
  "cmp r5, r6\n"             \
  "bne.w 1b\n"               \
  "add sp, sp, #16\n"        \
  "pop {r0, r7}\n"
/* `together` times two channels. */
#define TINYET_DSP_TWO_CHANNELS(LOOP, ROUND)                   \
  TINYET_DSP_TWO_ENTER                                         \
  ".set tinyet_at_dsp, 0\n"                                    \
  ".rept %c[together]\n"                                       \
  "ldrd r2, r4, [r0], #8\n"                                    \
  "ldr r7, [sp]\n" LOOP ROUND                                  \
  ".if tinyet_at_dsp == 2 * (%c[together] - 1)\n"              \
  "ldrd r5, r6, [sp, #8]\n"                                    \
  ".else\n"                                                    \
  "ldr r5, [sp, #8]\n"                                         \
  ".endif\n"                                                   \
  "strb r2, [r5, #%c[step] + tinyet_at_dsp]\n"                 \
  "strb r4, [r5, #%c[step] + tinyet_at_dsp + 1]\n"             \
  "strb r3, [r5, #tinyet_at_dsp + 1]\n"                        \
  ".if tinyet_at_dsp\n"                                        \
  "strb r1, [r5, #tinyet_at_dsp]\n"                            \
  ".elseif %c[together] == 1\n"                                \
  "strb r1, [r5], #2\n"                                        \
  ".else\n"                                                    \
  "strb r1, [r5]\n"                                            \
  ".endif\n"                                                   \
  ".set tinyet_at_dsp, tinyet_at_dsp + 2\n"                    \
  ".endr\n"                                                    \
  ".if %c[together] > 1\n"                                     \
  "add r5, r5, #2 * %c[together]\n"                            \
  ".endif\n" TINYET_DSP_TWO_LEAVE
#define TINYET_DSP_ONE_CHANNELS(LOOP, ROUND) \
  TINYET_DSP_TWO_ENTER                       \
  "ldrd r1, r3, [r0], #8\n"                  \
  "ldr r7, [sp]\n" LOOP ROUND                \
  "ldrd r5, r6, [sp, #8]\n"                  \
  "strb r3, [r5, #1]\n"                      \
  "strb r1, [r5], #2\n" TINYET_DSP_TWO_LEAVE
#define TINYET_DSP_TWO_STRAIGHT \
  TINYET_DSP_TWO_PAIRS("r2", "r4") ".rept %c[unroll] - 1\n" TINYET_DSP_TWO_PAIRS("r1", "r3") ".endr\n"
#define TINYET_DSP_TURNS(PAIRS) \
  "2:\n" PAIRS                  \
  "ldr r5, [sp, #4]\n"          \
  "cmp r7, r5\n"                \
  "bne.w 2b\n"
#define TINYET_DSP_TWO_LOOP \
  "mov r1, r2\n"            \
  "mov r3, r4\n" TINYET_DSP_TURNS(".rept %c[unroll]\n" TINYET_DSP_TWO_PAIRS("r1", "r3") ".endr\n")
#define TINYET_DSP_ONE_LOOP TINYET_DSP_TURNS(TINYET_DSP_ONE_PAIRS)
#define TINYET_DSP_TWO_ASM(TEXT)                                                                                  \
  /* r7 may be the frame pointer, which is not to be named among the registers that are lost. p is in r0 or r7. */ \
  __asm__ volatile(TINYET_DSP_LINES TEXT                                                                          \
                   :                                                                                              \
                   : [p] "r"(&state), [unroll] "i"(unroll), [step] "i"(step), [exponent] "i"(exponent),           \
                     [together] "i"(together)                                                                     \
                   : "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "memory", "cc")
#endif

/* `channels` channels, an even number, of one or two pixels (`at_once`), whose outputs are `step` bytes apart. pairs: of input
 * values, even. unroll: steps of two pairs of straight code, which divide them. */
TINYET_DSP_INLINE void tinyet_two_pixels_dsp(const int32_t *weights, const uint32_t *pixels, int8_t *output,
                                             const int32_t channels, const int32_t step, const int32_t pairs,
                                             const int32_t unroll, const int32_t at_once,
                                             const tinyet_rounding_dsp rounding) {
#if TINYET_DSP_ASM
  const struct {
    const int32_t *weights;
    const uint32_t *pixels, *end;
    int8_t *output, *last;
  } state = {weights, pixels, pixels + at_once * pairs, output, output + channels};
  const int32_t exponent = rounding.form == TINYET_DSP_ONE_SIDED ? rounding.exponent : 1;
  const int straight = 2 * unroll == pairs, one_sided = rounding.form == TINYET_DSP_ONE_SIDED;
  const int32_t together = straight && unroll <= TINYET_DSP_TOGETHER && channels % 4 == 0 ? 2 : 1;
  if (at_once == 1 && straight) {
    if (one_sided) {
      TINYET_DSP_TWO_ASM(TINYET_DSP_ONE_CHANNELS(TINYET_DSP_ONE_PAIRS, TINYET_DSP_ONE_ONE_SIDED));
    } else {
      TINYET_DSP_TWO_ASM(TINYET_DSP_ONE_CHANNELS(TINYET_DSP_ONE_PAIRS, TINYET_DSP_ONE_TWO_SIDED));
    }
  } else if (at_once == 1) {
    if (one_sided) {
      TINYET_DSP_TWO_ASM(TINYET_DSP_ONE_CHANNELS(TINYET_DSP_ONE_LOOP, TINYET_DSP_ONE_ONE_SIDED));
    } else {
      TINYET_DSP_TWO_ASM(TINYET_DSP_ONE_CHANNELS(TINYET_DSP_ONE_LOOP, TINYET_DSP_ONE_TWO_SIDED));
    }
  } else if (straight) {
    if (one_sided) {
      TINYET_DSP_TWO_ASM(TINYET_DSP_TWO_CHANNELS(TINYET_DSP_TWO_STRAIGHT, TINYET_DSP_TWO_ONE_SIDED));
    } else {
      TINYET_DSP_TWO_ASM(TINYET_DSP_TWO_CHANNELS(TINYET_DSP_TWO_STRAIGHT, TINYET_DSP_TWO_TWO_SIDED));
    }
  } else if (one_sided) {
    TINYET_DSP_TWO_ASM(TINYET_DSP_TWO_CHANNELS(TINYET_DSP_TWO_LOOP, TINYET_DSP_TWO_ONE_SIDED));
  } else {
    TINYET_DSP_TWO_ASM(TINYET_DSP_TWO_CHANNELS(TINYET_DSP_TWO_LOOP, TINYET_DSP_TWO_TWO_SIDED));
  }
#else
  (void)unroll;
  for (int32_t c = 0; c < channels; c += 2) {
    int32_t sums[4] = {weights[0], weights[0], weights[1], weights[1]};
    const uint32_t *x = pixels;
    weights += 2;
    for (int32_t pair = 0; pair < pairs; pair++, weights += 2, x += at_once) {
      for (int32_t k = 0; k < 4; k++) {
        if (k % 2 < at_once) {
          sums[k] = tinyet_smlad_dsp((uint32_t)weights[k / 2], x[k % 2], sums[k]);
        }
      }
    }
    for (int32_t k = 0; k < 4; k++) {
      const int32_t shift = rounding.form == TINYET_DSP_ONE_SIDED ? 0 : weights[4 + k / 2];
      if (k % 2 < at_once) {
        output[k % 2 * step + c + k / 2] =
            tinyet_round_shifted_dsp(sums[k], weights[k / 2], weights[2 + k / 2], shift, rounding);
      }
    }
    weights += rounding.form == TINYET_DSP_ONE_SIDED ? 4 : 6;
  }
#endif
}

/* Four times `fours` neighbouring values of two pixels: for each pair a word of both. Where the next ones go. */
TINYET_DSP_INLINE uint32_t *tinyet_widen_two_dsp(uint32_t *to, const int8_t *a, const int8_t *b, const int32_t fours) {
#if TINYET_DSP_ASM
  const int32_t most = fours % 8 == 0 ? 8 : (fours % 7 == 0 ? 7 : (fours % 6 == 0 ? 6 : (fours % 5 == 0 ? 5 : 4)));
  const int32_t turn = fours <= 8 ? fours : most;
  const int8_t *const end = a + 4 * (fours / turn * turn);
  __asm__ volatile(
      TINYET_DSP_LINES
      "1:\n"
      ".rept %c[turn]\n" TINYET_DSP_WIDEN_TWO ".endr\n"
      ".if %c[looped]\n"
      "cmp %[a], %[end]\n"
      "bne 1b\n"
      ".endif\n"
      ".rept %c[rest]\n" TINYET_DSP_WIDEN_TWO ".endr\n"
      : [to] "+&r"(to), [a] "+&r"(a), [b] "+&r"(b) /* the end may be what b is at first */
      : [end] "r"(end), [turn] "i"(turn), [rest] "i"(fours % turn), [looped] "i"(fours / turn > 1)
      : "r2", "r3", "r4", "r5", "memory", "cc");
#else
  for (int32_t i = 0; i < fours; i++, to += 4) {
    tinyet_widen_dsp(to, a + 4 * i, 4, 2);
    tinyet_widen_dsp(to + 1, b + 4 * i, 4, 2);
  }
#endif
  return to;
}

/* Scratch behind the inputs: a kernel row of padding, and one for each pixel that an edge of the image cuts. */
typedef struct {
  int8_t *blank, *cut[2];
} tinyet_edges_dsp;

/* Rows and columns that a kernel spans. */
TINYET_DSP_INLINE int32_t tinyet_span_h_dsp(const tinyet_conv2d_shape_dsp s) { return (s.kernel_h - 1) * s.dilation_h + 1; }
TINYET_DSP_INLINE int32_t tinyet_span_w_dsp(const tinyet_conv2d_shape_dsp s) { return (s.kernel_w - 1) * s.dilation_w + 1; }

/* Whether no kernel reaches over an edge of the image. */
TINYET_DSP_INLINE int tinyet_inside_dsp(const tinyet_conv2d_shape_dsp s) {
  return s.pad_top == 0 && (s.out_h - 1) * s.stride_h + tinyet_span_h_dsp(s) <= s.in_h && s.pad_left == 0 &&
         (s.out_w - 1) * s.stride_w + tinyet_span_w_dsp(s) <= s.in_w;
}

/* Where the bytes lie that a kernel row, or its tap `kx` where it is dilated, sees for a pixel. `whole`: all of the kernel is
 * in the image. */
TINYET_DSP_INLINE const int8_t *tinyet_bytes_of_dsp(const int8_t *input, const int32_t top, const int32_t left,
                                                    const int32_t ky, const int32_t kx, int8_t *cut, const int8_t *blank,
                                                    const int whole, const tinyet_conv2d_shape_dsp s) {
  const int32_t y = top + ky * s.dilation_h, x = left + kx * s.dilation_w;
  const int8_t *const row = input + y * s.in_w * s.in_pixel_stride;
  if (whole) {
    return row + x * s.in_pixel_stride;
  }
  if ((uint32_t)y >= (uint32_t)s.in_h || (s.dilation_w != 1 && (uint32_t)x >= (uint32_t)s.in_w)) {
    return blank;
  }
  if (s.dilation_w == 1 && (x < 0 || x + s.kernel_w > s.in_w)) {
    tinyet_edge_dsp(cut, row, x, s);
    return cut;
  }
  return row + x * s.in_pixel_stride;
}

/* Where the kernel lies for one or two pixels (`at_once`). */
typedef struct {
  int32_t top[2], left[2];
} tinyet_places_dsp;

/* The values being gathered: their destination, and the last of an odd number, which wait for those of the next row. */
typedef struct {
  uint32_t *to, odd[2];
  int32_t waits;
} tinyet_gathered_dsp;

/* What kernel row `ky` sees there, or its tap `kx` where it is dilated. */
TINYET_DSP_INLINE tinyet_gathered_dsp tinyet_gather_row_dsp(tinyet_gathered_dsp g, const int8_t *input, const int32_t ky,
                                                            const int32_t kx, const tinyet_places_dsp p, const int32_t at_once,
                                                            const int whole, const tinyet_edges_dsp edges,
                                                            const tinyet_conv2d_shape_dsp s) {
  const int32_t count = (s.dilation_w == 1 ? s.kernel_w : 1) * s.in_c, second = at_once - 1;
  const int8_t *const a = tinyet_bytes_of_dsp(input, p.top[0], p.left[0], ky, kx, edges.cut[0], edges.blank, whole, s);
  const int8_t *b = a;
  if (at_once == 2) {
    b = tinyet_bytes_of_dsp(input, p.top[1], p.left[1], ky, kx, edges.cut[1], edges.blank, whole, s);
    if (count >= 4) {
      g.to = tinyet_widen_two_dsp(g.to, a, b, count / 4);
    }
  } else {
    tinyet_widen_dsp(g.to, a, count & ~3, 1);
    g.to += count / 4 * 2;
  }
  if ((count & 2) != 0) {
    tinyet_widen_dsp(g.to, a + (count & ~3), 2, 1);
    tinyet_widen_dsp(g.to + second, b + (count & ~3), 2, 1);
    g.to += at_once;
  }
  if ((count & 1) != 0) {
    const uint32_t last_a = (uint32_t)(int32_t)a[count - 1], last_b = (uint32_t)(int32_t)b[count - 1];
    if (g.waits) {
      g.to[0] = tinyet_low_int16x2_dsp(g.odd[0], last_a);
      g.to[second] = tinyet_low_int16x2_dsp(g.odd[1], last_b);
      g.to += at_once;
    } else {
      g.odd[0] = last_a;
      g.odd[1] = last_b;
    }
    g.waits = !g.waits;
  }
  return g;
}

/* All that the kernel sees there, in the order of conv2d_2x2.py. */
TINYET_DSP_INLINE void tinyet_gather_two_dsp(uint32_t *to, const int8_t *input, const tinyet_places_dsp p,
                                             const int32_t at_once, const int whole, const tinyet_edges_dsp edges,
                                             const tinyet_conv2d_shape_dsp s) {
  tinyet_gathered_dsp g = {to, {0, 0}, 0};
  if (whole && at_once == 2 && s.dilation_w == 1 && s.kernel_w * s.in_c % 2 != 0) {
#pragma GCC unroll 3 /* so that it is known which row waits */
    for (int32_t ky = 0; ky < s.kernel_h; ky++) {
      g = tinyet_gather_row_dsp(g, input, ky, 0, p, at_once, whole, edges, s);
    }
  } else {
    for (int32_t ky = 0; ky < s.kernel_h; ky++) {
      for (int32_t kx = 0; kx < (s.dilation_w == 1 ? 1 : s.kernel_w); kx++) {
        g = tinyet_gather_row_dsp(g, input, ky, kx, p, at_once, whole, edges, s);
      }
    }
  }
  if (g.waits) {
    g.to[0] = g.odd[0]; /* the upper half meets a weight of zero */
    g.to[at_once - 1] = g.odd[1];
  }
}

/* The outputs of one or two pixels, whose inputs are in scratch. */
TINYET_DSP_INLINE void tinyet_outputs_of_two_dsp(const int32_t *weights, const uint32_t *pixels, int8_t *out,
                                                 const int32_t pairs, const int32_t at_once, const tinyet_conv2d_shape_dsp s,
                                                 const tinyet_rounding_dsp rounding) {
  const int32_t words = 2 * pairs + (rounding.form == TINYET_DSP_ONE_SIDED ? 6 : 8); /* of two channels' weights */
  tinyet_two_pixels_dsp(weights, pixels, out, s.out_c & ~1, s.out_pixel_stride, pairs, s.unroll, at_once, rounding);
  if (s.out_c % 2 != 0) {
    const int32_t *const last = weights + s.out_c / 2 * words;
    tinyet_two_pixels_dsp(last, pixels, out + s.out_c - 2, 2, s.out_pixel_stride, pairs, s.unroll, at_once, rounding);
  }
}

/* What the rounding leaves out, of all pixels before `end`. */
TINYET_DSP_INLINE void tinyet_clamp_pixels_dsp(int8_t *end, const tinyet_conv2d_shape_dsp s, const tinyet_rounding_dsp rounding) {
  if (rounding.low > -128 || rounding.high < 127) {
    const int32_t pixels = s.batch * s.out_h * s.out_w, dense = s.out_pixel_stride == s.out_c;
    const int32_t run = dense ? pixels * s.out_c : s.out_c; /* bytes without a gap */
    for (int8_t *first = end - pixels * s.out_pixel_stride; first != end; first += dense ? run : s.out_pixel_stride) {
      for (int8_t *value = first; value != first + run; value++) {
        *value = (int8_t)tinyet_clamp(*value, rounding.low, rounding.high);
      }
    }
  }
}

/* Any convolution of two output channels at least, any two pixels that follow each other in the output at a time; the last of an
 * odd number is alone. s.unroll: steps of two pairs. scratch: 8 bytes a pair of input values, an even number, and where a kernel
 * reaches over an edge three times those of a kernel row, or of a tap where it is dilated, in whole words. */
TINYET_DSP_INLINE void tinyet_conv2d_s8_w16_im2col_2x2_dsp(const int8_t *input, int8_t *output, void *scratch,
                                                           const int32_t *weights, const tinyet_conv2d_shape_dsp s,
                                                           const tinyet_rounding_dsp rounding) {
  const int32_t together = (s.dilation_w == 1 ? s.kernel_w : 1) * s.in_c;
  const int32_t segments = s.kernel_h * (s.dilation_w == 1 ? 1 : s.kernel_w);
  const int32_t pairs = segments * (together / 2) + (segments * (together % 2) + 1) / 2;
  const int32_t even = pairs + pairs % 2, count = s.out_h * s.out_w, room = (together + 3) / 4 * 4;
  const uint32_t last_top = (uint32_t)(s.in_h - tinyet_span_h_dsp(s)), last_left = (uint32_t)(s.in_w - tinyet_span_w_dsp(s));
  const int inside = tinyet_inside_dsp(s), may_be = s.in_h >= tinyet_span_h_dsp(s) && s.in_w >= tinyet_span_w_dsp(s);
  uint32_t *const pixels = (uint32_t *)scratch;
  int8_t *const blank = (int8_t *)(pixels + 2 * even);
  const tinyet_edges_dsp edges = {blank, {blank + room, blank + 2 * room}};
  if (!inside) {
    memset(blank, s.zero_point, (size_t)together);
  }
  for (int32_t n = 0; n < s.batch; n++) {
    int32_t y = 0, x = 0;
    for (int32_t first = 0; first < count; first += 2) {
      const int alone = count % 2 != 0 && first == count - 1;
      int8_t *const out = output + first * s.out_pixel_stride;
      tinyet_places_dsp p;
      for (int32_t j = 0; j < 2; j++) {
        p.top[j] = y * s.stride_h - s.pad_top;
        p.left[j] = x * s.stride_w - s.pad_left;
        if (++x == s.out_w && s.out_h > 1) {
          x = 0;
          y++;
        }
      }
      if (alone) {
        tinyet_gather_two_dsp(pixels, input, p, 1, inside, edges, s);
        if (pairs % 2 != 0) {
          pixels[pairs] = 0;
        }
        tinyet_outputs_of_two_dsp(weights, pixels, out, even, 1, s, rounding);
        continue;
      }
      if (inside || (may_be && (uint32_t)p.top[0] <= last_top && (uint32_t)p.top[1] <= last_top &&
                     (uint32_t)p.left[0] <= last_left && (uint32_t)p.left[1] <= last_left)) {
        tinyet_gather_two_dsp(pixels, input, p, 2, 1, edges, s);
      } else {
        tinyet_gather_two_dsp(pixels, input, p, 2, 0, edges, s);
      }
      if (pairs % 2 != 0) {
        pixels[2 * pairs] = pixels[2 * pairs + 1] = 0;
      }
      tinyet_outputs_of_two_dsp(weights, pixels, out, even, 2, s, rounding);
    }
    input += s.in_h * s.in_w * s.in_pixel_stride;
    output += count * s.out_pixel_stride;
  }
  tinyet_clamp_pixels_dsp(output, s, rounding);
}

/* The same for a pointwise one without padding, of an even number of pixels, whose input lies in pairs already: for each two
 * pixels, for each of their channels c, c + 2 and c + 1, c + 3 a word of the first and one of the second. */
TINYET_DSP_INLINE void tinyet_conv2d_s8_w16_nhw2c2_2x2_dsp(const int8_t *input, int8_t *output, const int32_t *weights,
                                                           const tinyet_conv2d_shape_dsp s, const tinyet_rounding_dsp rounding) {
  const uint32_t *pixels = (const uint32_t *)(const void *)input;
  for (const int8_t *const end = output + s.out_w * s.out_pixel_stride; output != end; output += 2 * s.out_pixel_stride) {
    tinyet_outputs_of_two_dsp(weights, pixels, output, s.in_c / 2, 2, s, rounding);
    pixels += s.in_c;
  }
  tinyet_clamp_pixels_dsp(output, s, rounding);
}

#endif
