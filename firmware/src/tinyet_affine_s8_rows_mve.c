/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_elementwise_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
/* Four neighbours to a vector of words, as in tinyet_affine_s8_same_mve. r4: factor of b, r5: offset, with what a row's value of b
 * adds to it. */
#define TINYET_MVE_OF_COLUMNS(Q) \
  "vldrb.s32 " Q ", [%[from]], #4\n" \
  "vldrb.s32 q4, [%[with]], #4\n" \
  "vmlas.s32 " Q ", q6, r5\n" \
  "vmla.s32 " Q ", q4, r4\n"
#define TINYET_MVE_OF_ROW(Q) \
  "vldrb.s32 " Q ", [%[from]], #4\n" \
  "vmlas.s32 " Q ", q6, r5\n"
/* r6: factor of a, r8, r9: bounds, r10: sixteens, r12: values behind them. */
#define TINYET_MVE_AFFINE_ROW(SHIFT, FOUR) \
  __asm__ volatile( \
      "ldm.w %[state]!, {r4, r5, r6, r8, r9, r10, r12}\n" \
      "ldr.w %[state], [%[state]]\n" \
      "vdup.32 q6, r6\n" \
      "vdup.8 q5, r9\n" \
      "vldrb.8 q7, [%[state]]\n" \
      "wls lr, r10, 2f\n" \
      "1:\n" FOUR("q0") FOUR("q1") FOUR("q2") FOUR("q3") \
      "vqrshrnb.s32 q0, q0, #16\n" \
      "vqrshrnt.s32 q0, q2, #16\n" \
      "vqrshrnb.s32 q1, q1, #16\n" \
      "vqrshrnt.s32 q1, q3, #16\n" \
      "vqrshrnb.s16 q0, q0, #" SHIFT "\n" \
      "vqrshrnt.s16 q0, q1, #" SHIFT "\n" TINYET_MVE_BOUNDS \
      "vstrb.8 q0, [%[to], q7]\n" \
      "add.w %[to], %[to], #16\n" \
      "le lr, 1b\n" \
      "2:\n" \
      "wlstp.32 lr, r12, 4f\n" \
      "3:\n" FOUR("q0") \
      "vqrshrnb.s32 q0, q0, #16\n" \
      "vqrshrnb.s16 q0, q0, #" SHIFT "\n" TINYET_MVE_BOUNDS \
      "vstrb.32 q0, [%[to]], #4\n" \
      "letp lr, 3b\n" \
      "4:\n" \
      : [from] "+l"(from), [with] "+l"(with), [to] "+l"(to), [state] "+r"(at) \
      : \
      : "r4", "r5", "r6", "r8", "r9", "r10", "r12", "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d10", \
        "d11", "d12", "d13", "d14", "d15", "memory")
#define TINYET_MVE_BOUNDS \
  "vdup.8 q4, r8\n" \
  "vmax.s8 q0, q0, q4\n" \
  "vmin.s8 q0, q0, q5\n"
#define TINYET_MVE_AFFINE_ROWS(FOUR) \
  if (p->shift == 5) { \
    TINYET_MVE_AFFINE_ROW("5", FOUR); \
  } else { \
    TINYET_MVE_AFFINE_ROW("6", FOUR); \
  }
/* clang-format on */

typedef struct {
  int32_t b_factor, offset, a_factor, low, high, sixteens, last;
  const uint8_t *order;
} state_of_row;
#else
/* Rounded shift to nearest, ties upward, saturated to int16. */
static int32_t narrowed(int32_t value) { return tinyet_clamp((int32_t)(((int64_t)value + (1 << 15)) >> 16), -32768, 32767); }
#endif

void tinyet_affine_s8_rows_mve(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_affine_s8_rows_mve_params *p) {
  const int32_t row = p->walk.row, per_row = p->walk.per_row;
#if TINYET_MVE_ASM
  static const uint8_t order[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
#endif
  for (int32_t n = p->walk.rows; n > 0; n--) {
    const int32_t offset = p->offset + (per_row ? *b * p->b_factor : 0);
#if TINYET_MVE_ASM
    const state_of_row state = {p->b_factor, offset, p->a_factor, p->low, p->high, row >> 4, row & 15, order};
    const state_of_row *at = &state;
    const int8_t *from = a, *with = b;
    int8_t *to = output;
    if (per_row) {
      TINYET_MVE_AFFINE_ROWS(TINYET_MVE_OF_ROW);
    } else {
      TINYET_MVE_AFFINE_ROWS(TINYET_MVE_OF_COLUMNS);
    }
#else
    for (int32_t i = 0; i < row; i++) {
      const int32_t sum = a[i] * p->a_factor + (per_row ? 0 : b[i] * p->b_factor) + offset;
      output[i] = (int8_t)tinyet_clamp((narrowed(sum) + (1 << (p->shift - 1))) >> p->shift, p->low, p->high);
    }
#endif
    a += row, b += p->walk.step, output += row;
  }
}
