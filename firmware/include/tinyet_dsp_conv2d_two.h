/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised int8 convolutions of one group with int16 weights, two pixels by two channels at a time: see tinyet_dsp.h.
 *
 * Two pairs of input values of both pixels are one load, as are their weights for both channels, so that eight products need
 * two loads, where four pixels by two channels (tinyet_dsp_conv2d.h) need three: that one is for cores whose loads cost by
 * the word.
 *
 * Inputs lie in scratch as pairs of neighbouring bytes of a kernel row (tinyet_dsp_widen), where it is dilated of each tap;
 * for each pair a word of both pixels. The weight stream, in words, for each pair of output channels a, b (the last pair
 * overlaps the one before where out_c is odd):
 *   bias a, b | for each pair of input values, filled up to an even number: its weights for a, and for b |
 *   multiplier a, b | offset a, b | shift a, b, which are missing where the rounding is one-sided
 * Weights and bias have the shift before the multiplication (tinyet_dsp_before) in them. */
#ifndef TINYET_DSP_CONV2D_TWO_H
#define TINYET_DSP_CONV2D_TWO_H

#include "tinyet_dsp_conv2d.h"

#if TINYET_DSP_ASM
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
/* On the stack: inputs, their end, output, where that ends. */
#define TINYET_DSP_TWO_CHANNELS(LOOP, ROUND) \
  "push {r0, r7}\n"                          \
  "mov r12, %[p]\n"                          \
  "ldmia.w r12, {r0, r1, r2, r3, r4}\n"      \
  "push {r1, r2, r3, r4}\n"                  \
  "1:\n"                                     \
  "ldrd r2, r4, [r0], #8\n"                  \
  "ldr r7, [sp]\n" LOOP ROUND                \
  "ldrd r5, r6, [sp, #8]\n"                  \
  "strb r2, [r5, #%c[step]]\n"               \
  "strb r4, [r5, #%c[step] + 1]\n"           \
  "strb r3, [r5, #1]\n"                      \
  "strb r1, [r5], #2\n"                      \
  "str r5, [sp, #8]\n"                       \
  "cmp r5, r6\n"                             \
  "bne.w 1b\n"                               \
  "add sp, sp, #16\n"                        \
  "pop {r0, r7}\n"
#define TINYET_DSP_TWO_STRAIGHT \
  TINYET_DSP_TWO_PAIRS("r2", "r4") ".rept %c[unroll] - 1\n" TINYET_DSP_TWO_PAIRS("r1", "r3") ".endr\n"
#define TINYET_DSP_TWO_LOOP                                        \
  "mov r1, r2\n"                                                   \
  "mov r3, r4\n"                                                   \
  "2:\n"                                                           \
  ".rept %c[unroll]\n" TINYET_DSP_TWO_PAIRS("r1", "r3") ".endr\n" \
  "ldr r5, [sp, #4]\n"                                             \
  "cmp r7, r5\n"                                                   \
  "bne.w 2b\n"
#define TINYET_DSP_TWO_ASM(LOOP, ROUND)                                                                        \
  /* r7 may be the frame pointer, which is not to be named among the registers that are lost. p is in r0 or r7. */ \
  __asm__ volatile(TINYET_DSP_LINES TINYET_DSP_TWO_CHANNELS(LOOP, ROUND)                                      \
                   :                                                                                           \
                   : [p] "r"(&state), [unroll] "i"(unroll), [step] "i"(step), [exponent] "i"(exponent)         \
                   : "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "memory", "cc")
#endif

/* `channels` channels, an even number, of two pixels, whose outputs are `step` bytes apart; where the next weights are.
 * pairs: of input values, even. unroll: steps of two pairs of straight code, which divide them. */
TINYET_DSP_INLINE void tinyet_dsp_two_pixels(const int32_t *weights, const uint32_t *pixels, int8_t *output,
                                             const int32_t channels, const int32_t step, const int32_t pairs,
                                             const int32_t unroll, const tinyet_dsp_rounding rounding) {
#if TINYET_DSP_ASM
  const struct {
    const int32_t *weights;
    const uint32_t *pixels, *end;
    int8_t *output, *last;
  } state = {weights, pixels, pixels + 2 * pairs, output, output + channels};
  const int32_t exponent = rounding.form == TINYET_DSP_ONE_SIDED ? rounding.exponent : 1;
  if (rounding.form == TINYET_DSP_ONE_SIDED) {
    if (2 * unroll == pairs) {
      TINYET_DSP_TWO_ASM(TINYET_DSP_TWO_STRAIGHT, TINYET_DSP_TWO_ONE_SIDED);
    } else {
      TINYET_DSP_TWO_ASM(TINYET_DSP_TWO_LOOP, TINYET_DSP_TWO_ONE_SIDED);
    }
  } else if (2 * unroll == pairs) {
    TINYET_DSP_TWO_ASM(TINYET_DSP_TWO_STRAIGHT, TINYET_DSP_TWO_TWO_SIDED);
  } else {
    TINYET_DSP_TWO_ASM(TINYET_DSP_TWO_LOOP, TINYET_DSP_TWO_TWO_SIDED);
  }
#else
  (void)unroll;
  for (int32_t c = 0; c < channels; c += 2) {
    int32_t sums[4] = {weights[0], weights[0], weights[1], weights[1]};
    const uint32_t *x = pixels;
    weights += 2;
    for (int32_t pair = 0; pair < pairs; pair++, weights += 2, x += 2) {
      for (int32_t k = 0; k < 4; k++) {
        sums[k] = tinyet_dsp_smlad((uint32_t)weights[k / 2], x[k % 2], sums[k]);
      }
    }
    for (int32_t k = 0; k < 4; k++) {
      const int32_t shift = rounding.form == TINYET_DSP_ONE_SIDED ? 0 : weights[4 + k / 2];
      output[k % 2 * step + c + k / 2] =
          tinyet_dsp_round_shifted(sums[k], weights[k / 2], weights[2 + k / 2], shift, rounding);
    }
    weights += rounding.form == TINYET_DSP_ONE_SIDED ? 4 : 6;
  }
#endif
}

/* Any convolution of two output pixels and two output channels at least, any two pixels that follow each other in the output
 * at a time. s.unroll: steps of two pairs. scratch: 8 bytes a pair of input values, an even number, and those of a kernel row. */
TINYET_DSP_INLINE void tinyet_dsp_conv2d_two_w16(const int8_t *input, int8_t *output, void *scratch,
                                                 const int32_t *weights, const tinyet_dsp_conv2d s,
                                                 const tinyet_dsp_rounding rounding) {
  const int32_t together = s.dilation_w == 1 ? s.kernel_w : 1; /* taps */
  const int32_t row_pairs = s.kernel_w / together * tinyet_dsp_pairs(together * s.in_c);
  const int32_t pairs = s.kernel_h * row_pairs, even = pairs + pairs % 2, count = s.out_h * s.out_w;
  const int32_t words = 2 * even + (rounding.form == TINYET_DSP_ONE_SIDED ? 6 : 8); /* of two channels' weights */
  uint32_t *const pixels = (uint32_t *)scratch;
  int8_t *const edge = (int8_t *)(pixels + 2 * even);
  if (pairs % 2 != 0) {
    pixels[2 * pairs] = pixels[2 * pairs + 1] = 0;
  }
  for (int32_t n = 0; n < s.batch; n++) {
    for (int32_t first = 0; first < count; first += 2) {
      if (count % 2 != 0 && first > count - 2) {
        first = count - 2;
      }
      for (int32_t j = 0; j < 2; j++) {
        tinyet_dsp_patch(pixels + j, input, (first + j) / s.out_w * s.stride_h - s.pad_top,
                         (first + j) % s.out_w * s.stride_w - s.pad_left, 2, edge, s);
      }
      int8_t *const out = output + first * s.out_pitch;
      tinyet_dsp_two_pixels(weights, pixels, out, s.out_c & ~1, s.out_pitch, even, s.unroll, rounding);
      if (s.out_c % 2 != 0) {
        tinyet_dsp_two_pixels(weights + s.out_c / 2 * words, pixels, out + s.out_c - 2, 2, s.out_pitch, even, s.unroll,
                              rounding);
      }
    }
    input += s.in_h * s.in_w * s.in_pitch;
    output += count * s.out_pitch;
  }
  if (rounding.low > -128 || rounding.high < 127) {
    const int32_t run = s.out_pitch == s.out_c ? s.batch * count * s.out_c : s.out_c; /* bytes without a gap */
    const int8_t *const end = output;
    for (output -= s.batch * count * s.out_pitch; output != end; output += s.out_pitch == s.out_c ? run : s.out_pitch) {
      for (int8_t *value = output; value != output + run; value++) {
        *value = (int8_t)tinyet_clamp(*value, rounding.low, rounding.high);
      }
    }
  }
}

#endif
