/* SPDX-License-Identifier: Apache-2.0 */
/* Layers with int16 activations for cores with Helium, whose sums have 64 bits: VMLALDAVA adds eight products to one
 * of four of them. The loop is inline assembly, one text for GCC and clang; elsewhere the same is plain C
 * (tinyet_mve.h). */
#ifndef TINYET_WIDE_SUMS_MVE_H
#define TINYET_WIDE_SUMS_MVE_H

#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* stream: of each four outputs, filled up with zeros, the biases, int64; eight inputs' weights of each in turn,
 * int8, filled up with zeros; a multiplier and a shift of each, as tinyet_requantize_s64 takes them. */
typedef struct {
  const int32_t *stream;
  int32_t depth, count, low, high;
} tinyet_wide_outputs_mve;

/* A pixel sees kernel_h * kernel_w * in_c values, the depth. */
typedef struct {
  int32_t batch, in_h, in_w, in_c, out_h, out_w;
  int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
  tinyet_wide_outputs_mve outputs;
} tinyet_conv2d_s16_wide_mve_params;

typedef struct {
  int32_t rows;
  tinyet_wide_outputs_mve outputs;
} tinyet_linear_s16_wide_mve_params;

/* One group. scratch: a window's values. */
void tinyet_conv2d_s16_wide_mve(const int16_t *input, int16_t *output, void *scratch,
                                const tinyet_conv2d_s16_wide_mve_params *params);
void tinyet_linear_s16_wide_mve(const int16_t *input, int16_t *output, const tinyet_linear_s16_wide_mve_params *params);

#if TINYET_MVE_ASM
/* A function of assembly alone. GCC would take registers that the text does not tell it of as not written to. */
#if defined(__clang__)
#define TINYET_WIDE_NAKED __attribute__((naked, noinline, unused))
#else
#define TINYET_WIDE_NAKED __attribute__((naked, noinline, noipa, unused))
#endif

/* clang-format off */
#define TINYET_MVE_WIDE_PRODUCTS(Q, LOW, HIGH) \
  "vldrb.s16 " Q ", [r6], #8\n" \
  "vmlaldava.s16 " LOW ", " HIGH ", q0, " Q "\n"
#define TINYET_MVE_WIDE_ROUND(LOW, HIGH) \
  "ldrd r7, r12, [r6], #8\n" \
  "umull " LOW ", lr, " LOW ", r7\n" \
  "mla " HIGH ", " HIGH ", r7, lr\n" \
  "sqrshrl " LOW ", " HIGH ", #64, r12\n"
/* r6: stream, r10: inputs, r11: depth; q4, q5: bounds. On the stack: four outputs; input; output; outputs that are
 * left. */
TINYET_WIDE_NAKED static void tinyet_wide_row_mve(TINYET_MVE_UNUSED const int16_t *input, TINYET_MVE_UNUSED int16_t *output,
                                                  TINYET_MVE_UNUSED const tinyet_wide_outputs_mve *outputs) {
  __asm__ volatile(
      "push.w {r4-r11, lr}\n"
      "vpush {d8-d11}\n"
      "sub.w sp, sp, #28\n"
      "ldrd r6, r11, [r2]\n"
      "ldrd r3, r4, [r2, #8]\n"
      "ldr.w r5, [r2, #16]\n"
      "vdup.32 q4, r4\n"
      "vdup.32 q5, r5\n"
      "strd r0, r1, [sp, #16]\n"
      "str.w r3, [sp, #24]\n"
      "1:\n"
      "ldm.w r6!, {r0, r1, r2, r3, r4, r5, r8, r9}\n"
      "ldr.w r10, [sp, #16]\n"
      "dlstp.16 lr, r11\n"
      "2:\n"
      "vldrh.u16 q0, [r10], #16\n" TINYET_MVE_WIDE_PRODUCTS("q1", "r0", "r1") TINYET_MVE_WIDE_PRODUCTS("q2", "r2", "r3")
      TINYET_MVE_WIDE_PRODUCTS("q3", "r4", "r5") TINYET_MVE_WIDE_PRODUCTS("q1", "r8", "r9")
      "letp lr, 2b\n" TINYET_MVE_WIDE_ROUND("r0", "r1") TINYET_MVE_WIDE_ROUND("r2", "r3") TINYET_MVE_WIDE_ROUND("r4", "r5")
      TINYET_MVE_WIDE_ROUND("r8", "r9")
      "stm.w sp, {r0, r2, r4, r8}\n"
      "ldrd r7, r12, [sp, #20]\n"
      "vldrw.32 q0, [sp]\n"
      "vmax.s32 q0, q0, q4\n"
      "vmin.s32 q0, q0, q5\n"
      "vctp.32 r12\n"
      "vpst\n"
      "vstrht.32 q0, [r7], #8\n"
      "subs.w r12, r12, #4\n"
      "strd r7, r12, [sp, #20]\n"
      "bgt.w 1b\n"
      "add.w sp, sp, #28\n"
      "vpop {d8-d11}\n"
      "pop.w {r4-r11, pc}\n");
}
/* clang-format on */
#else
static inline void tinyet_wide_row_mve(const int16_t *input, int16_t *output, const tinyet_wide_outputs_mve *outputs) {
  const int32_t eights = (outputs->depth + 7) / 8;
  const int32_t *stream = outputs->stream;
  for (int32_t n = 0; n < outputs->count; n += 4, stream += 16 + 8 * eights) {
    const int8_t *const weights = (const int8_t *)(stream + 8);
    for (int32_t i = 0; i < 4 && n + i < outputs->count; i++) {
      int64_t sum;
      memcpy(&sum, stream + 2 * i, sizeof sum);
      for (int32_t k = 0; k < outputs->depth; k++) {
        sum += (int64_t)input[k] * weights[k / 8 * 32 + 8 * i + k % 8];
      }
      const int32_t *const factor = stream + 8 + 8 * eights + 2 * i;
      const int32_t value = tinyet_requantize_s64(sum, factor[0], factor[1]);
      output[n + i] = (int16_t)tinyet_clamp(value, outputs->low, outputs->high);
    }
  }
}
#endif

#ifdef __cplusplus
}
#endif

#endif
