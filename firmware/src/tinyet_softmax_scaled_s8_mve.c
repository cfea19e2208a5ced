/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_exponentials_mve.h"
#include "tinyet_fixed_point.h"
#include "tinyet_softmax_mve.h"

/* Exponentials times the reciprocal of their sum and the factor to output steps, shifted to the right; 32 bits and more leave
 * nothing. */
static void shares(const int8_t *input, int8_t *output, const tinyet_row_mve *r, int32_t reciprocal, int32_t shift,
                   const tinyet_softmax_scaled_s8_params *p) {
#if TINYET_MVE_ASM
  const int32_t of[3] = {r->largest, p->multiplier, p->out_zero_point}; /* q3, q4, q5 */
  __asm__ volatile(
      "ldr.w lr, [%[of]]\n"
      "vdup.32 q3, lr\n"
      "ldr.w lr, [%[of], #4]\n"
      "vdup.32 q4, lr\n"
      "ldr.w lr, [%[of], #8]\n"
      "vdup.32 q5, lr\n"
      "vmov.i32 q2, #127\n"
      "dlstp.32 lr, %[count]\n"
      "1:\n" TINYET_MVE_EXPONENTIALS
      "vqrdmulh.s32 q1, q1, %[reciprocal]\n"
      "vqrdmulh.s32 q1, q1, q4\n"
      "vrshl.s32 q1, %[left]\n"
      "vadd.i32 q1, q1, q5\n"
      "vmin.s32 q1, q1, q2\n"
      "vstrb.32 q1, [%[to]], #4\n"
      "letp lr, 1b\n"
      : [from] "+l"(input), [to] "+l"(output)
      : [count] "r"(p->shape.depth), [of] "r"(of), [near] "r"(r->near), [table] "r"(r->exponentials),
        [reciprocal] "r"(reciprocal), [left] "r"(-shift)
      : "lr", "cc", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d10", "d11", "memory");
#else
  for (int32_t i = 0; i < p->shape.depth; i++) {
    const int32_t product = tinyet_high_mul_positive(tinyet_exponential_mve(input[i], r), reciprocal);
    const int32_t value = shift < 32 ? tinyet_requantize(product, p->multiplier, -shift) : 0;
    output[i] = (int8_t)tinyet_clamp(value + p->out_zero_point, INT8_MIN, INT8_MAX);
  }
#endif
}

void tinyet_softmax_scaled_s8_mve(const int8_t *input, int8_t *output, const tinyet_softmax_scaled_s8_params *params) {
  const int32_t depth = params->shape.depth;
  tinyet_row_mve r = {params->exponentials, 0, params->count};
  for (int32_t n = params->shape.outer; n != 0; n--, input += depth, output += depth) {
    r.largest = tinyet_largest_mve(input, depth);
    const int32_t sum = tinyet_sum_of_exponentials_mve(input, depth, &r);
    const int32_t headroom = tinyet_leading_zeros((uint32_t)sum);
    shares(input, output, &r, tinyet_reciprocal_of_sum(sum, headroom), params->shift - headroom, params);
  }
}
