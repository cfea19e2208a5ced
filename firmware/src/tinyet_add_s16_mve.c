/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_elementwise_s16_mve.h"

#include <stddef.h>

#if TINYET_MVE_ASM
/* clang-format off */
/* q3 and q2 have the even and the odd values of y, q1 and q0 those of x. */
#define TINYET_MVE_SUM(LOAD, STORE, OF_Y) \
  LOAD("q0", "x") LOAD("q1", "y") OF_Y \
  "vmullb.s16 q1, q0, q5\n" \
  "vmullt.s16 q0, q0, q5\n" \
  "vmla.s32 q1, q3, %[sign]\n" \
  "vmla.s32 q0, q2, %[sign]\n" \
  TINYET_MVE_S16_SCALED("q3", "q1", "%[last]", "%[right]") \
  TINYET_MVE_S16_SCALED("q2", "q0", "%[last]", "%[right]") \
  TINYET_MVE_S16_JOINED("q3", "q2") STORE("q3")
#define TINYET_MVE_HALVES \
  "vshllb.s16 q3, q1, #14\n" \
  "vshllt.s16 q2, q1, #14\n"
#define TINYET_MVE_PARTS \
  "vshllb.s16 q2, q1, #15\n" \
  "vshllt.s16 q1, q1, #15\n" \
  TINYET_MVE_S16_SCALED("q3", "q2", "%[multiplier]", "%[shift]") \
  TINYET_MVE_S16_SCALED("q2", "q1", "%[multiplier]", "%[shift]")
/* What stays in vectors comes through lr, which no loop needs yet. */
#define TINYET_MVE_WALK(BEFORE, BODY, AFTER, COUNT) \
  __asm__ volatile( \
      "ldr.w lr, [%[p], %[x_factor]]\n" \
      "vdup.16 q5, lr\n" \
      "ldr.w lr, [%[p], %[low]]\n" \
      "vdup.16 q6, lr\n" \
      "ldr.w lr, [%[p], %[high]]\n" \
      "vdup.16 q7, lr\n" BEFORE BODY AFTER \
      : [x] "+r"(a), [y] "+r"(b), [to] "+r"(to) \
      : [multiplier] "r"(p->multiplier), [shift] "r"(p->shift), [last] "r"(p->out_multiplier), [right] "r"(p->out_shift), \
        [sign] "r"(p->y_sign), [p] "r"(p), [count] "r"(COUNT), [x_factor] "i"(offsetof(tinyet_add_s16_mve_params, x_factor)), \
        [low] "i"(offsetof(tinyet_add_s16_mve_params, low)), [high] "i"(offsetof(tinyet_add_s16_mve_params, high)) \
      : "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d10", "d11", "d12", "d13", "d14", "d15", "memory")
#define TINYET_MVE_SUMS(OF_Y) \
  TINYET_MVE_S16_ROW("", TINYET_MVE_SUM(TINYET_MVE_S16_LOAD, TINYET_MVE_S16_STORE, OF_Y), \
                     TINYET_MVE_SUM(TINYET_MVE_S16_LOAD_SOME, TINYET_MVE_S16_STORE_SOME, OF_Y))
/* clang-format on */
#else
static int32_t sum_of(int32_t x, int32_t y, const tinyet_add_s16_mve_params *p) {
  const int32_t sum = x * p->x_factor + tinyet_requantize(y * (1 << 15), p->multiplier, p->shift) * p->y_sign;
  return tinyet_clamp(tinyet_requantize(sum, p->out_multiplier, p->out_shift), p->low, p->high);
}
#endif

void tinyet_add_s16_mve(const int16_t *x, const int16_t *y, int16_t *output, const tinyet_add_s16_mve_params *p) {
#if TINYET_MVE_ASM
  const int32_t eights = p->row >> 3, rest = p->row & 7;
#endif
  for (int32_t n = p->rows; n > 0; n--) {
#if TINYET_MVE_ASM
    const int16_t *a = x, *b = y;
    int16_t *to = output;
    if (p->shift == 0) {
      TINYET_MVE_SUMS(TINYET_MVE_HALVES);
    } else {
      TINYET_MVE_SUMS(TINYET_MVE_PARTS);
    }
#else
    for (int32_t i = 0; i < p->row; i++) {
      output[i] = (int16_t)sum_of(x[i], y[i], p);
    }
#endif
    x += p->x_row, y += p->y_row, output += p->row;
  }
}
