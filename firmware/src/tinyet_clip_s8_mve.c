/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_elementwise_mve.h"

void tinyet_clip_s8_mve(const int8_t *input, int8_t *output, const tinyet_clip_params *p) {
#if TINYET_MVE_ASM
  if (p->count != 0) {
    __asm__ volatile(
        "vdup.8 q1, %[low]\n"
        "vdup.8 q2, %[high]\n"
        "dlstp.8 lr, %[count]\n"
        "1:\n"
        "vldrb.8 q0, [%[from]], #16\n"
        "vmax.s8 q0, q0, q1\n"
        "vmin.s8 q0, q0, q2\n"
        "vstrb.8 q0, [%[to]], #16\n"
        "letp lr, 1b\n"
        : [from] "+l"(input), [to] "+l"(output)
        : [low] "r"(p->low), [high] "r"(p->high), [count] "r"(p->count)
        : "lr", "d0", "d1", "d2", "d3", "d4", "d5", "memory");
  }
#else
  for (int32_t i = 0; i < p->count; i++) {
    output[i] = (int8_t)tinyet_clamp(input[i], p->low, p->high);
  }
#endif
}
