/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_resize_mve.h"

TINYET_MVE_RESIZE_ROWS(int16_t, "h", int32_t, "32", "w", "8", 1024, )

/* Ties away from zero. The sum is left * 1024 + (right - left) * weight, of which the last ten bits say no more than whether it is a
 * tie: a negative sum, lowered by the least there is, is another number without these bits only where they are zeros. */
TINYET_DSP_INLINE void columns_between(const int32_t *left, const int32_t *right, int16_t *to, int32_t count, int32_t weight) {
#if TINYET_MVE_ASM
  __asm__ volatile(
      "dlstp.32 lr, %[count]\n"
      "1:\n"
      "vldrw.u32 q0, [%[left]], #16\n"
      "vldrw.u32 q1, [%[right]], #16\n"
      "vsub.i32 q1, q1, q0\n"
      "vqdmulh.s32 q2, q1, %[half]\n"
      "vmul.i32 q1, q1, %[whole]\n"
      "vadd.i32 q0, q0, q2\n"
      "vshr.s32 q2, q0, #31\n"
      "vpt.i32 eq, q1, zr\n"
      "vaddt.i32 q0, q0, q2\n"
      "vrshr.s32 q0, q0, #10\n"
      "vstrh.32 q0, [%[to]], #8\n"
      "letp lr, 1b\n"
      : [left] "+r"(left), [right] "+r"(right), [to] "+l"(to)
      : [count] "r"(count), [half] "r"(weight << 21), [whole] "r"((uint32_t)weight << 22)
      : "lr", "cc", "d0", "d1", "d2", "d3", "d4", "d5", "memory");
#else
  for (int32_t i = 0; i < count; i++) {
    const int64_t sum = (int64_t)left[i] * (1024 - weight) + (int64_t)right[i] * weight;
    to[i] = (int16_t)((sum + (sum >> 63) + (INT32_C(1) << 19)) >> 20);
  }
#endif
}

TINYET_MVE_RESIZE(tinyet_resize_bilinear_s16_q10_mve, int16_t, int32_t)
