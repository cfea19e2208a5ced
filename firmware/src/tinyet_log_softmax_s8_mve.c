/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_exponentials_mve.h"
#include "tinyet_fixed_point.h"
#include "tinyet_softmax_mve.h"

/* Differences less the logarithm of the sum, to nearest, ties away from zero; the least output where a difference is
 * far. */
static void logarithms(const int8_t *input, int8_t *output, int32_t largest, int32_t log_sum,
                       const tinyet_log_softmax_s8_params *p) {
#if TINYET_MVE_ASM
  __asm__ volatile(
      "vmvn.i32 q2, #127\n"
      "dlstp.32 lr, %[count]\n"
      "1:\n"
      "vldrb.s32 q0, [%[from]], #4\n"
      "vsub.i32 q0, q0, %[largest]\n"
      "vcmp.s32 gt, q0, %[far]\n"
      "vshl.s32 q0, %[left]\n"
      "vqrdmulh.s32 q0, q0, %[multiplier]\n"
      "vsub.i32 q0, q0, %[log]\n"
      "vshr.s32 q1, q0, #31\n"
      "vadd.i32 q0, q0, q1\n"
      "vrshr.s32 q0, q0, #22\n"
      "vadd.i32 q0, q0, %[zero]\n"
      "vpsel q0, q0, q2\n"
      "vmax.s32 q0, q0, q2\n"
      "vstrb.32 q0, [%[to]], #4\n"
      "letp lr, 1b\n"
      : [from] "+l"(input), [to] "+l"(output)
      : [count] "r"(p->shape.depth), [largest] "r"(largest), [far] "r"(-p->near), [left] "r"(p->left),
        [multiplier] "r"(p->multiplier), [log] "r"(log_sum), [zero] "r"(127)
      : "lr", "cc", "d0", "d1", "d2", "d3", "d4", "d5", "memory");
#else
  for (int32_t i = 0; i < p->shape.depth; i++) {
    const int32_t below = largest - input[i];
    int32_t value = INT8_MIN;
    if (below < p->near) {
      const int32_t difference = tinyet_high_mul(tinyet_shift_left(-below, p->left), p->multiplier);
      value = tinyet_clamp(tinyet_round_shift(difference - log_sum, 22) + 127, INT8_MIN, INT8_MAX);
    }
    output[i] = (int8_t)value;
  }
#endif
}

void tinyet_log_softmax_s8_mve(const int8_t *input, int8_t *output, const tinyet_log_softmax_s8_params *params) {
  const int32_t depth = params->shape.depth;
  tinyet_row_mve r = {params->exponentials, 0, params->count};
  for (int32_t n = params->shape.outer; n != 0; n--, input += depth, output += depth) {
    r.largest = tinyet_largest_mve(input, depth);
    logarithms(input, output, r.largest, tinyet_log_of_sum(tinyet_sum_of_exponentials_mve(input, depth, &r)), params);
  }
}
