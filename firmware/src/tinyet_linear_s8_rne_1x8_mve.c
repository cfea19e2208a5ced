/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_linear_mve.h"
#include "tinyet_rne_mve.h"

/* ends: a float for each place. */
static int8_t output_of(int32_t sum, const int8_t *ends, int32_t place, const tinyet_rounding_mve *r) {
  int32_t factor;
  memcpy(&factor, ends + 4 * place, 4);
  return tinyet_round_rne_mve(sum, factor, r);
}

void tinyet_linear_outputs_rne_mve_reference(const int32_t *sums, const int8_t *ends, int8_t *output, int32_t blocks,
                                             const tinyet_rounding_mve *r) {
  for (; blocks != 0; blocks--, output += 16, ends += 64, sums += 16) {
    for (int32_t i = 0; i < 16; i++) {
      output[(i & 3) * 4 + i / 4] = output_of(sums[i], ends, i, r);
    }
  }
}

void tinyet_linear_last_outputs_rne_mve(const int32_t *sums, const int8_t *ends, int8_t *output, int32_t count,
                                        const tinyet_rounding_mve *r) {
#if TINYET_MVE_FPU_ASM
  __asm__ volatile(
      "ldm.w %[state], {r4, r5, r6}\n"
      "vdup.32 q2, r5\n"
      "vdup.32 q3, r6\n"
      "dlstp.32 lr, %[count]\n"
      "1:\n"
      "vldrw.32 q0, [%[sums]], #16\n"
      "vldrw.32 q1, [%[ends]], #16\n"
      TINYET_MVE_TO_FLOATS(0, 0)
      TINYET_MVE_TIMES_EACH(0, 1)
      TINYET_MVE_TO_NEAREST(0, 0)
      "vqadd.s32 q0, q0, r4\n"
      "vmax.s32 q0, q0, q2\n"
      "vmin.s32 q0, q0, q3\n"
      "vstrb.32 q0, [%[to]], #4\n"
      "letp lr, 1b\n"
      : [sums] "+l"(sums), [ends] "+l"(ends), [to] "+l"(output)
      : [state] "r"(&r->zero_point), [count] "r"(count)
      : "r4", "r5", "r6", "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "memory");
#else
  for (int32_t i = 0; i < count; i++) {
    output[i] = output_of(sums[i], ends, i, r);
  }
#endif
}
