/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_elementwise_s16_mve.h"

void tinyet_clip_s16_mve(const int16_t *input, int16_t *output, const tinyet_clip_params *p) {
#if TINYET_MVE_ASM
  if (p->count != 0) {
    /* clang-format off */
    __asm__ volatile(
        TINYET_MVE_S16_BOUNDS
        "dlstp.16 lr, %[count]\n"
        "1:\n" TINYET_MVE_S16_LOAD("q0", "from") TINYET_MVE_S16_BOUNDED("q0") TINYET_MVE_S16_STORE("q0")
        "letp lr, 1b\n"
        : [from] "+r"(input), [to] "+r"(output)
        : [low] "r"(p->low), [high] "r"(p->high), [count] "r"(p->count)
        : "lr", "d0", "d1", "d12", "d13", "d14", "d15", "memory");
    /* clang-format on */
  }
#else
  for (int32_t i = 0; i < p->count; i++) {
    output[i] = (int16_t)tinyet_clamp(input[i], p->low, p->high);
  }
#endif
}
