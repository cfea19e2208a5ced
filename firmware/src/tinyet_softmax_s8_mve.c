/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_exponentials_mve.h"
#include "tinyet_fixed_point.h"
#include "tinyet_softmax_mve.h"

/* Exponentials times the reciprocal of their sum, shifted to the right. */
static void shares(const int8_t *input, int8_t *output, int32_t count, const tinyet_row_mve *r, int32_t reciprocal,
                   int32_t shift) {
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
    const int64_t product = tinyet_high_mul_positive(tinyet_exponential_mve(input[i], r), reciprocal);
    output[i] = (int8_t)(tinyet_clamp((int32_t)((product + (INT64_C(1) << (shift - 1))) >> shift), 0, 255) - 128);
  }
#endif
}

void tinyet_softmax_s8_mve(const int8_t *input, int8_t *output, const tinyet_softmax_s8_params *params) {
  const int32_t depth = params->shape.depth;
  tinyet_row_mve r = {params->exponentials, 0, params->count};
  for (int32_t n = params->shape.outer; n != 0; n--, input += depth, output += depth) {
    r.largest = tinyet_largest_mve(input, depth);
    const int32_t sum = tinyet_sum_of_exponentials_mve(input, depth, &r);
    const int32_t headroom = tinyet_leading_zeros((uint32_t)sum);
    /* 31 fraction bits of the exponential become 8, the sum's scale is undone: 23 bits and more, as the largest exponential
     * is 1; 32 and more leave nothing. */
    shares(input, output, depth, &r, tinyet_reciprocal_of_sum(sum, headroom), 12 - headroom + 31 - 8);
  }
}
