/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_elementwise_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
/* Four neighbours to a vector of words. They are narrowed so that word i has the values 0 of vectors 0 ... 3 for i = 0, and so
 * on: q7 puts these where they belong. r4: factor of b, r5: offset. */
#define TINYET_MVE_FOUR(Q) \
  "vldrb.s32 " Q ", [%[a]], #4\n" \
  "vldrb.s32 q4, [%[b]], #4\n" \
  "vmlas.s32 " Q ", q6, r5\n" \
  "vmla.s32 " Q ", q4, r4\n"
#define TINYET_MVE_SIXTEENS(SHIFT, CLAMP) \
  __asm__ volatile( \
      "ldm.w %[state], {r4, r5, r6, r8}\n" \
      "vdup.32 q6, r6\n" \
      "vldrb.8 q7, [%[order]]\n" \
      "mov.w %[order], r8\n" \
      "dls lr, %[count]\n" \
      "1:\n" TINYET_MVE_FOUR("q0") TINYET_MVE_FOUR("q1") TINYET_MVE_FOUR("q2") TINYET_MVE_FOUR("q3") \
      "vqrshrnb.s32 q0, q0, #16\n" \
      "vqrshrnt.s32 q0, q2, #16\n" \
      "vqrshrnb.s32 q1, q1, #16\n" \
      "vqrshrnt.s32 q1, q3, #16\n" \
      "vqrshrnb.s16 q0, q0, #" SHIFT "\n" \
      "vqrshrnt.s16 q0, q1, #" SHIFT "\n" CLAMP \
      "vstrb.8 q0, [%[to], q7]\n" \
      "add.w %[to], %[to], #16\n" \
      "le lr, 1b\n" \
      : [a] "+l"(a), [b] "+l"(b), [to] "+r"(output), [order] "+r"(at) \
      : [state] "r"(state), [count] "r"(sixteens) \
      : "r4", "r5", "r6", "r8", "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d10", "d11", "d12", "d13", \
        "d14", "d15", "memory")
#define TINYET_MVE_BOUNDS \
  "vdup.8 q4, r8\n" \
  "vmax.s8 q0, q0, q4\n" \
  "lsr.w r6, r8, #16\n" \
  "vdup.8 q4, r6\n" \
  "vmin.s8 q0, q0, q4\n"
/* clang-format on */
#endif

/* Rounded shift to nearest, ties upward, saturated to int16. */
static int32_t narrowed(int32_t value) { return tinyet_clamp((int32_t)(((int64_t)value + (1 << 15)) >> 16), -32768, 32767); }

void tinyet_affine_s8_same_mve(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_affine_s8_mve_params *p) {
  int32_t count = p->count;
#if TINYET_MVE_ASM
  static const uint8_t order[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  const int32_t sixteens = count >> 4;
  if (sixteens != 0) {
    const int32_t bounds = (int32_t)(((uint32_t)p->low & 0xffu) | ((uint32_t)p->high << 16));
    const int32_t state[] = {p->b_factor, p->offset, p->a_factor, bounds};
    const uint8_t *at = order;
    const int32_t clamped = p->low > -128 || p->high < 127;
    if (p->shift == 5) {
      if (clamped) {
        TINYET_MVE_SIXTEENS("5", TINYET_MVE_BOUNDS);
      } else {
        TINYET_MVE_SIXTEENS("5", "");
      }
    } else if (clamped) {
      TINYET_MVE_SIXTEENS("6", TINYET_MVE_BOUNDS);
    } else {
      TINYET_MVE_SIXTEENS("6", "");
    }
    count &= 15;
  }
#endif
  for (; count != 0; count--) {
    const int32_t sum = *a++ * p->a_factor + *b++ * p->b_factor + p->offset;
    *output++ = (int8_t)tinyet_clamp((narrowed(sum) + (1 << (p->shift - 1))) >> p->shift, p->low, p->high);
  }
}
