/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_linear_mve.h"

void tinyet_linear_products_mve_reference(int32_t *sums, const int8_t *inputs, const int32_t *from,
                                          const int8_t *weights, const int32_t *end, int32_t vectors) {
  for (; sums != end; sums += 8, from += 8) {
    memmove(sums, from, 32);
    for (int32_t k = 0; k < 16 * vectors; k += 16) {
      for (int32_t i = 0; i < 8; i++) {
        for (int32_t n = 0; n < 16; n++) {
          sums[i] += inputs[k + n] * *weights++;
        }
      }
    }
  }
}

/* Of four places multipliers, then shifts. */
static int8_t output_of(int32_t sum, const int8_t *four, int32_t place, const tinyet_rounding_mve *r) {
  int32_t multiplier;
  memcpy(&multiplier, four + 4 * place, 4);
  return tinyet_round_mve(sum, multiplier, four[16 + place], r);
}

void tinyet_linear_outputs_mve_reference(const int32_t *sums, const int8_t *ends, int8_t *output, int32_t blocks,
                                         const tinyet_rounding_mve *r) {
  for (; blocks != 0; blocks--, output += 16, ends += 80, sums += 16) {
    for (int32_t i = 0; i < 16; i++) {
      output[(i & 3) * 4 + i / 4] = output_of(sums[i], ends + i / 4 * 20, i & 3, r);
    }
  }
}

#if TINYET_MVE_ASM
/* clang-format off */
#define TINYET_MVE_OUTPUTS(ROUND) \
  __asm__ volatile( \
      "ldm.w %[state], {r4, r5, r6}\n" \
      "vdup.32 q6, r5\n" \
      "vdup.32 q7, r6\n" \
      "dlstp.32 lr, %[count]\n" \
      "1:\n" \
      "vldrw.32 q0, [%[sums]], #16\n" \
      "vldrw.32 q1, [%[ends]], #16\n" \
      "vldrb.s32 q2, [%[ends]], #4\n" \
      "vqrdmulh.s32 q1, q0, q1\n" ROUND \
      "vrshl.s32 q1, q1, q2\n" \
      "vadd.i32 q1, q1, r4\n" \
      "vmax.s32 q1, q1, q6\n" \
      "vmin.s32 q1, q1, q7\n" \
      "vstrb.32 q1, [%[to]], #4\n" \
      "letp lr, 1b\n" \
      : [sums] "+l"(sums), [ends] "+l"(ends), [to] "+l"(output) \
      : [state] "r"(&r->zero_point), [count] "r"(count) \
      : "r4", "r5", "r6", "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d12", "d13", "d14", "d15", "memory")
/* clang-format on */
#endif

void tinyet_linear_last_outputs_mve(const int32_t *sums, const int8_t *ends, int8_t *output, int32_t count,
                                    const tinyet_rounding_mve *r) {
#if TINYET_MVE_ASM
  if (r->one_sided) {
    TINYET_MVE_OUTPUTS("");
  } else {
    TINYET_MVE_OUTPUTS("vshr.s32 q0, q0, #31\nvadd.i32 q1, q1, q0\n");
  }
#else
  for (int32_t i = 0; i < count; i++) {
    output[i] = output_of(sums[i], ends + i / 4 * 20, i & 3, r);
  }
#endif
}
