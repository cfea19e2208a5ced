/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_exponentials_mve.h"
#include "tinyet_fixed_point.h"
#include "tinyet_softmax_mve.h"

/* Differences in Qm.n less the logarithm of the sum, in output steps. Nothing of it is above zero: what corrects roundings of
 * numbers below it, and the upper bound, are the same for all. */
static void logarithms(const int8_t *input, int8_t *output, int32_t largest, int32_t log_sum,
                       const tinyet_log_softmax_scaled_s8_params *p) {
#if TINYET_MVE_ASM
  const int32_t of[3] = {largest, log_sum, p->out_zero_point}; /* q3, q4, q5 */
  __asm__ volatile(
      "ldr.w lr, [%[of]]\n"
      "vdup.32 q3, lr\n"
      "ldr.w lr, [%[of], #4]\n"
      "vdup.32 q4, lr\n"
      "ldr.w lr, [%[of], #8]\n"
      "vdup.32 q5, lr\n"
      "vmvn.i32 q2, #127\n"
      "dlstp.32 lr, %[count]\n"
      "1:\n"
      "vldrb.s32 q0, [%[from]], #4\n"
      "vsub.i32 q0, q0, q3\n"
      "vshl.s32 q0, %[left]\n"
      "vqrdmulh.s32 q0, q0, %[multiplier]\n"
      "vsub.i32 q0, q0, q4\n"
      "vqrdmulh.s32 q0, q0, %[out_multiplier]\n"
      "vshr.s32 q1, q0, #31\n"
      "vadd.i32 q0, q0, q1\n"
      "vrshl.s32 q0, %[out_shift]\n"
      "vadd.i32 q0, q0, q5\n"
      "vmax.s32 q0, q0, q2\n"
      "vstrb.32 q0, [%[to]], #4\n"
      "letp lr, 1b\n"
      : [from] "+l"(input), [to] "+l"(output)
      : [count] "r"(p->shape.depth), [of] "r"(of), [left] "r"(p->shift), [multiplier] "r"(p->multiplier),
        [out_multiplier] "r"(p->out_multiplier), [out_shift] "r"(p->out_shift)
      : "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d10", "d11", "memory");
#else
  for (int32_t i = 0; i < p->shape.depth; i++) {
    const int32_t value = tinyet_requantize(input[i] - largest, p->multiplier, p->shift) - log_sum;
    output[i] =
        (int8_t)tinyet_clamp(tinyet_requantize(value, p->out_multiplier, p->out_shift) + p->out_zero_point, INT8_MIN, INT8_MAX);
  }
#endif
}

void tinyet_log_softmax_scaled_s8_mve(const int8_t *input, int8_t *output, const tinyet_log_softmax_scaled_s8_params *params) {
  const int32_t depth = params->shape.depth;
  tinyet_row_mve r = {params->exponentials, 0, params->count};
  for (int32_t n = params->shape.outer; n != 0; n--, input += depth, output += depth) {
    r.largest = tinyet_largest_mve(input, depth);
    const int32_t sum = tinyet_sum_of_exponentials_mve(input, depth, &r);
    logarithms(input, output, r.largest, tinyet_round_shift(tinyet_log_of_sum(sum), params->log_shift), params);
  }
}
