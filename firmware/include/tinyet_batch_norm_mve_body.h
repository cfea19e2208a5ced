/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation for cores with Helium. The file that includes this has defined
 *
 *   KERNEL    the function's name
 *   element   the type of the elements
 *   LETTER    its letter in loads and stores
 *   FOUR      the bytes of four
 *   ROUND     instructions that make of sums in q0 what q5 and q6, multipliers and shifts, say
 *   rounded   the same in C: of a sum, a multiplier and a shift */
#ifndef TINYET_BATCH_NORM_MVE_BODY_H
#define TINYET_BATCH_NORM_MVE_BODY_H

#include "tinyet_batch_norm_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
/* q3: weights, q4: biases, q1, q2: bounds. */
#define TINYET_MVE_SUMS \
  "vmul.i32 q0, q0, q3\n" \
  "vadd.i32 q0, q0, q4\n" ROUND \
  "vadd.i32 q0, q0, %[zero]\n" \
  "vmax.s32 q0, q0, q1\n" \
  "vmin.s32 q0, q0, q2\n"
#define TINYET_MVE_NORMALISED(VALUES, BEFORE, BODY, AFTER) \
  __asm__ volatile( \
      VALUES \
      "ldr.w lr, [%[params], #20]\n" \
      "vdup.32 q1, lr\n" \
      "ldr.w lr, [%[params], #24]\n" \
      "vdup.32 q2, lr\n" BEFORE "1:\n" BODY AFTER \
      : [from] "+l"(input), [to] "+l"(output) \
      : [count] "r"(count), [there] "r"(there), [step] "r"(step), [values] "r"(values), [params] "r"(params), \
        [zero] "r"(params->zero_point) \
      : "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d10", "d11", "d12", "d13", "d14", "d15", \
        "memory")
#define TINYET_MVE_VECTORS \
  "vldrw.32 q3, [%[values]]\n" \
  "vldrw.32 q4, [%[values], #16]\n" \
  "vldrw.32 q5, [%[values], #32]\n" \
  "vldrw.32 q6, [%[values], #48]\n"
#define TINYET_MVE_WORDS \
  "ldr.w lr, [%[values]]\n" \
  "vdup.32 q3, lr\n" \
  "ldr.w lr, [%[values], #4]\n" \
  "vdup.32 q4, lr\n" \
  "ldr.w lr, [%[values], #8]\n" \
  "vdup.32 q5, lr\n" \
  "ldr.w lr, [%[values], #12]\n" \
  "vdup.32 q6, lr\n"
/* clang-format on */
#endif

/* So many channels, up to four, of `count` pixels; step: bytes from one to the next. */
static void some_channels(const element *input, element *output, int32_t count, int32_t there, int32_t step,
                          const int32_t *values, const tinyet_batch_norm_mve_params *params) {
#if TINYET_MVE_ASM
  if (there == 4) {
    TINYET_MVE_NORMALISED(TINYET_MVE_VECTORS, "dls lr, %[count]\n",
                          "vldr" LETTER ".s32 q0, [%[from]]\n"
                          "add.w %[from], %[from], %[step]\n" TINYET_MVE_SUMS "vstr" LETTER ".32 q0, [%[to]]\n"
                          "add.w %[to], %[to], %[step]\n",
                          "le lr, 1b\n");
  } else {
    TINYET_MVE_NORMALISED(TINYET_MVE_VECTORS, "vctp.32 %[there]\ndls lr, %[count]\n",
                          "vpst\nvldr" LETTER "t.s32 q0, [%[from]]\n"
                          "add.w %[from], %[from], %[step]\n" TINYET_MVE_SUMS "vpst\nvstr" LETTER "t.32 q0, [%[to]]\n"
                          "add.w %[to], %[to], %[step]\n",
                          "le lr, 1b\n");
  }
#else
  const int32_t channels = step / (int32_t)sizeof *input;
  for (int32_t n = 0; n < count; n++, input += channels, output += channels) {
    for (int32_t c = 0; c < there; c++) {
      const int32_t value = rounded(input[c] * values[c] + values[4 + c], values[8 + c], values[12 + c]);
      output[c] = (element)tinyet_clamp(value + params->zero_point, params->low, params->high);
    }
  }
#endif
}

/* Values of one channel. */
static void one_channel(const element *input, element *output, int32_t count, const int32_t *values,
                        const tinyet_batch_norm_mve_params *params) {
#if TINYET_MVE_ASM
  const int32_t there = 0, step = 0;
  TINYET_MVE_NORMALISED(TINYET_MVE_WORDS, "dlstp.32 lr, %[count]\n",
                        "vldr" LETTER ".s32 q0, [%[from]], #" FOUR "\n" TINYET_MVE_SUMS
                        "vstr" LETTER ".32 q0, [%[to]], #" FOUR "\n",
                        "letp lr, 1b\n");
#else
  for (int32_t i = 0; i < count; i++) {
    const int32_t value = rounded(input[i] * values[0] + values[1], values[2], values[3]);
    output[i] = (element)tinyet_clamp(value + params->zero_point, params->low, params->high);
  }
#endif
}

void KERNEL(const element *input, element *output, const tinyet_batch_norm_mve_params *params) {
  const int32_t channels = params->channels, inner = params->inner;
  if (inner == 1) {
    for (int32_t c = 0; c < channels; c += 4) {
      const int32_t there = channels - c < 4 ? channels - c : 4, step = channels * (int32_t)sizeof *input;
      some_channels(input + c, output + c, params->outer, there, step, params->values + 4 * c, params);
    }
    return;
  }
  for (int32_t n = params->outer; n != 0; n--) {
    for (int32_t c = 0; c < channels; c++, input += inner, output += inner) {
      one_channel(input, output, inner, params->values + 4 * c, params);
    }
  }
}

#endif
