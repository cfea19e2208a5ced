/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_softmax_mve.h"

#include "tinyet_fixed_point.h"

/* How a row's exponentials are found. */
typedef struct {
  const int32_t *exponentials;
  int32_t largest, near; /* differences from `near` on have no exponential */
} row;

static int32_t largest_of(const int8_t *input, int32_t count) {
  int32_t largest = INT8_MIN;
#if TINYET_MVE_ASM
  __asm__ volatile(
      "dlstp.8 lr, %[count]\n"
      "1:\n"
      "vldrb.8 q0, [%[from]], #16\n"
      "vmaxv.s8 %[largest], q0\n"
      "letp lr, 1b\n"
      : [from] "+l"(input), [largest] "+r"(largest)
      : [count] "r"(count)
      : "lr", "d0", "d1", "memory");
#else
  for (int32_t i = 0; i < count; i++) {
    largest = input[i] > largest ? input[i] : largest;
  }
#endif
  return largest;
}

#if TINYET_MVE_ASM
/* Four exponentials, zeros where there is none, to q1. q3 has the largest value. */
#define TINYET_MVE_EXPONENTIALS            \
  "vldrb.s32 q0, [%[from]], #4\n"          \
  "vsub.i32 q0, q3, q0\n"                  \
  "vpt.s32 lt, q0, %[near]\n"              \
  "vldrwt.u32 q1, [%[table], q0, uxtw #2]\n"
#else
static int32_t exponential(int32_t value, const row *r) {
  const int32_t below = r->largest - value;
  return below < r->near ? r->exponentials[below] : 0;
}
#endif

/* Q12.19 */
static int32_t sum_of(const int8_t *input, int32_t count, const row *r) {
  int32_t sum = 0;
#if TINYET_MVE_ASM
  __asm__ volatile(
      "vdup.32 q3, %[largest]\n"
      "mov.w r4, #0\n" /* VADDVA takes an even register */
      "dlstp.32 lr, %[count]\n"
      "1:\n" TINYET_MVE_EXPONENTIALS
      "vrshr.s32 q1, q1, #12\n"
      "vaddva.s32 r4, q1\n"
      "letp lr, 1b\n"
      "mov.w %[sum], r4\n"
      : [from] "+l"(input), [sum] "=r"(sum)
      : [count] "r"(count), [largest] "r"(r->largest), [near] "r"(r->near), [table] "r"(r->exponentials)
      : "r4", "lr", "cc", "d0", "d1", "d2", "d3", "d6", "d7", "memory");
#else
  for (int32_t i = 0; i < count; i++) {
    sum += tinyet_as_addend(exponential(input[i], r));
  }
#endif
  return sum;
}

/* Exponentials times the reciprocal of their sum, shifted to the right. */
static void shares(const int8_t *input, int8_t *output, int32_t count, const row *r, int32_t reciprocal, int32_t shift) {
#if TINYET_MVE_ASM
  __asm__ volatile(
      "vdup.32 q3, %[largest]\n"
      "vmov.i32 q2, #127\n"
      "dlstp.32 lr, %[count]\n"
      "1:\n" TINYET_MVE_EXPONENTIALS
      "vqrdmulh.s32 q1, q1, %[reciprocal]\n"
      "vrshl.s32 q1, %[left]\n"
      "vadd.i32 q1, q1, %[zero]\n"
      "vmin.s32 q1, q1, q2\n"
      "vstrb.32 q1, [%[to]], #4\n"
      "letp lr, 1b\n"
      : [from] "+l"(input), [to] "+l"(output)
      : [count] "r"(count), [largest] "r"(r->largest), [near] "r"(r->near), [table] "r"(r->exponentials),
        [reciprocal] "r"(reciprocal), [left] "r"(-shift), [zero] "r"(-128)
      : "lr", "cc", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "memory");
#else
  for (int32_t i = 0; i < count; i++) {
    const int64_t product = tinyet_high_mul_positive(exponential(input[i], r), reciprocal);
    output[i] = (int8_t)(tinyet_clamp((int32_t)((product + (INT64_C(1) << (shift - 1))) >> shift), 0, 255) - 128);
  }
#endif
}

void tinyet_softmax_s8_mve(const int8_t *input, int8_t *output, const tinyet_softmax_s8_params *params) {
  const int32_t depth = params->shape.depth;
  row r = {params->exponentials, 0, params->count};
  for (int32_t n = params->shape.outer; n != 0; n--, input += depth, output += depth) {
    r.largest = largest_of(input, depth);
    const int32_t sum = sum_of(input, depth, &r);
    const int32_t headroom = tinyet_leading_zeros((uint32_t)sum);
    /* 31 fraction bits of the exponential become 8, the sum's scale is undone: 23 bits and more, as the largest exponential
     * is 1; 32 and more leave nothing. */
    shares(input, output, depth, &r, tinyet_reciprocal_of_sum(sum, headroom), 12 - headroom + 31 - 8);
  }
}
