/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised pointwise int8 convolutions of at most eight input channels (k8), with int16 weights: see tinyet_dsp.h.
 *
 * All inputs of a pixel stay in registers, while the weights of one output channel after another go by.
 *
 * The weight stream, in words, for each output channel:
 *   bias | the weights of each pair of input channels (tinyet_widen_dsp) | multiplier | offset | shift, which is missing
 *   where the rounding is one-sided
 * Weights and bias have the shift before the multiplication (tinyet_before_dsp) in them. */
#ifndef TINYET_CONV2D_K8_DSP_H
#define TINYET_CONV2D_K8_DSP_H

#include "tinyet_conv2d_dsp.h"

#if TINYET_DSP_ASM
/* clang-format off */
/* A pixel at r12, into r1 ... r4. */
#define TINYET_DSP_K8_REST(X, Y) \
  ".if %c[channels] & 2\n" \
  "ldrsb " X ", [r12], #1\n" \
  "ldrsb r5, [r12], #1\n" \
  "pkhbt " X ", " X ", r5, lsl #16\n" \
  ".if %c[channels] & 1\n" \
  "ldrsb " Y ", [r12], #1\n" \
  ".endif\n" \
  ".elseif %c[channels] & 1\n" \
  "ldrsb " X ", [r12], #1\n" \
  ".endif\n"
#define TINYET_DSP_K8_PIXEL \
  ".if %c[channels] >= 4\n" \
  "ldr r2, [r12], #4\n" \
  ".if %c[channels] == 8\n" \
  "ldr r4, [r12], #4\n" \
  "sxtb16 r3, r4\n" \
  "sxtb16 r4, r4, ror #8\n" \
  ".endif\n" \
  "sxtb16 r1, r2\n" \
  "sxtb16 r2, r2, ror #8\n" \
  TINYET_DSP_K8_REST("r3", "r4") \
  ".else\n" \
  TINYET_DSP_K8_REST("r1", "r2") \
  ".endif\n"
/* A channel of it: the sum is in r5. */
#define TINYET_DSP_K8_SUM \
  ".if %c[channels] > 6\n" \
  "ldmia.w lr!, {r5, r6, r8, r9, r10, r11, r12}\n" \
  ".elseif %c[channels] > 4\n" \
  "ldmia.w lr!, {r5, r6, r8, r9, r11, r12}\n" \
  ".elseif %c[channels] > 2\n" \
  "ldmia.w lr!, {r5, r6, r8, r11, r12}\n" \
  ".else\n" \
  "ldmia.w lr!, {r5, r6, r11, r12}\n" \
  ".endif\n" \
  "smlad r5, r6, r1, r5\n" \
  ".if %c[channels] > 2\n" \
  "smlad r5, r8, r2, r5\n" \
  ".endif\n" \
  ".if %c[channels] > 4\n" \
  "smlad r5, r9, r3, r5\n" \
  ".endif\n" \
  ".if %c[channels] > 6\n" \
  "smlad r5, r10, r4, r5\n" \
  ".endif\n"
#define TINYET_DSP_K8_FINISH \
  ".if %c[one_sided]\n" \
  "smmla r5, r5, r11, r12\n" \
  "ssat r5, #8, r5, asr #%c[exponent]\n" \
  ".else\n" \
  "add r12, r12, r5, asr #31\n" \
  "smmlar r5, r5, r11, r12\n" \
  "ldr r6, [lr], #4\n" \
  "asr r5, r5, r6\n" \
  "ssat r5, #8, r5\n" \
  ".endif\n" \
  "strb r5, [r0], #1\n"
/* clang-format on */
#endif

/* s: of a row of pixels. s.unroll: channels of a turn, which divide out_c. */
TINYET_DSP_INLINE void tinyet_conv2d_1x1_s8_w16_k8_dsp(const int8_t *input, int8_t *output, const int32_t *weights,
                                                       const tinyet_conv2d_shape_dsp s, const tinyet_rounding_dsp rounding) {
  const int8_t *const end = output + s.out_w * s.out_c;
#if TINYET_DSP_ASM
  const struct {
    int8_t *output;
    const int8_t *end, *input;
    const int32_t *weights;
  } state = {output, end, input, weights};
  /* The end of a pixel's outputs is in r7; end, input and weights are on the stack. r7 may be the frame pointer, which is not
   * to be named among the registers that are lost. The state is in r0 or r7. */
  __asm__ volatile(
      TINYET_DSP_LINES
      "push {r0, r7}\n"
      "mov r12, %[state]\n"
      "ldmia.w r12, {r0, r1, r2, r3}\n"
      "mov r7, r0\n"
      "push {r1, r2, r3}\n"
      "1:\n"
      "ldrd r12, lr, [sp, #4]\n" TINYET_DSP_K8_PIXEL
      "str r12, [sp, #4]\n"
      "addw r7, r7, #%c[out_c]\n"
      "2:\n"
      ".rept %c[unroll]\n" TINYET_DSP_K8_SUM TINYET_DSP_K8_FINISH ".endr\n"
      ".if %c[unroll] != %c[out_c]\n"
      "cmp r0, r7\n"
      "bne.w 2b\n"
      ".endif\n"
      "ldr r12, [sp]\n"
      "cmp r0, r12\n"
      "bne.w 1b\n"
      "add sp, sp, #12\n"
      "pop {r0, r7}\n"
      :
      : [state] "r"(&state), [channels] "i"(s.in_c), [out_c] "i"(s.out_c), [unroll] "i"(s.unroll),
        [one_sided] "i"(rounding.form == TINYET_DSP_ONE_SIDED),
        [exponent] "i"(rounding.form == TINYET_DSP_ONE_SIDED ? rounding.exponent : 1)
      : "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "memory", "cc");
#else
  const int32_t pairs = tinyet_int16x2_count_dsp(s.in_c);
  for (int8_t *out = output; out != end; input += s.in_c) {
    uint32_t pixel[4];
    tinyet_widen_dsp(pixel, input, s.in_c, 1);
    const int32_t *w = weights;
    for (int32_t c = 0; c < s.out_c; c++) {
      int32_t sum = *w++;
      for (int32_t i = 0; i < pairs; i++) {
        sum = tinyet_smlad_dsp((uint32_t)*w++, pixel[i], sum);
      }
      const int32_t shift = rounding.form == TINYET_DSP_ONE_SIDED ? 0 : w[2];
      *out++ = tinyet_round_shifted_dsp(sum, w[0], w[1], shift, rounding);
      w += rounding.form == TINYET_DSP_ONE_SIDED ? 2 : 3;
    }
  }
#endif
  if (rounding.low > -128 || rounding.high < 127) {
    for (int8_t *value = output; value != end; value++) {
      *value = (int8_t)tinyet_clamp(*value, rounding.low, rounding.high);
    }
  }
}

#endif
