/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_elementwise_s16_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
/* q3 and q2: words of the sums, from those of q0. */
#define TINYET_MVE_SUM(LOAD, STORE, OF_ALL) \
  LOAD("q0", "from") OF_ALL \
  "vadd.i32 q1, q1, %[value]\n" \
  "vadd.i32 q0, q0, %[value]\n" \
  TINYET_MVE_S16_SCALED("q3", "q1", "%[last]", "%[right]") \
  TINYET_MVE_S16_SCALED("q2", "q0", "%[last]", "%[right]") \
  TINYET_MVE_S16_JOINED("q3", "q2") STORE("q3")
#define TINYET_MVE_HALVES \
  "vmullb.s16 q1, q0, q5\n" \
  "vmullt.s16 q0, q0, q5\n"
#define TINYET_MVE_PARTS \
  "vshllb.s16 q2, q0, #15\n" \
  "vshllt.s16 q3, q0, #15\n" \
  TINYET_MVE_S16_SCALED("q1", "q2", "%[multiplier]", "%[shift]") \
  TINYET_MVE_S16_SCALED("q0", "q3", "%[multiplier]", "%[shift]") \
  "vmul.i32 q1, q1, %[factor]\n" \
  "vmul.i32 q0, q0, %[factor]\n"
/* Both bounds are in one register, the count is in that of the loop: with -Og GCC would not find enough for more. */
#define TINYET_MVE_WALK(BEFORE, BODY, AFTER, COUNT) \
  register int32_t counted __asm__("lr") = COUNT; \
  uint32_t bounded = bounds; \
  __asm__ volatile( \
      "vdup.16 q5, %[factor]\n" \
      "vdup.16 q6, %[bounds]\n" \
      "lsr.w %[bounds], %[bounds], #16\n" \
      "vdup.16 q7, %[bounds]\n" BEFORE BODY AFTER \
      : [from] "+r"(from), [to] "+r"(to), [count] "+r"(counted), [bounds] "+r"(bounded) \
      : [multiplier] "r"(p->multiplier), [shift] "r"(p->shift), [last] "r"(p->out_multiplier), [right] "r"(p->out_shift), \
        [factor] "r"(factor), [value] "r"(value) \
      : "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d10", "d11", "d12", "d13", "d14", "d15", "memory")
#define TINYET_MVE_SUMS(OF_ALL) \
  TINYET_MVE_S16_ROW("", TINYET_MVE_SUM(TINYET_MVE_S16_LOAD, TINYET_MVE_S16_STORE, OF_ALL), \
                     TINYET_MVE_SUM(TINYET_MVE_S16_LOAD_SOME, TINYET_MVE_S16_STORE_SOME, OF_ALL))
/* clang-format on */
#endif

static int32_t rescaled(int32_t value, const tinyet_add_s16_per_row_mve_params *p) {
  return tinyet_requantize(value * (1 << 15), p->multiplier, p->shift) * p->y_sign;
}

void tinyet_add_s16_per_row_mve(const int16_t *all, const int16_t *each, int16_t *output,
                                const tinyet_add_s16_per_row_mve_params *p) {
  const int32_t of_each = p->of_each;
#if TINYET_MVE_ASM
  const int32_t eights = p->row >> 3, rest = p->row & 7, factor = of_each ? p->x_factor : p->y_sign;
  const uint32_t bounds = ((uint32_t)p->high << 16) | (uint16_t)p->low;
#endif
  for (int32_t n = p->rows; n > 0; n--) {
    const int32_t value = of_each ? rescaled(*each, p) : *each * p->x_factor;
    each++;
#if TINYET_MVE_ASM
    const int16_t *from = all;
    int16_t *to = output;
    if (of_each) {
      TINYET_MVE_SUMS(TINYET_MVE_HALVES);
    } else {
      TINYET_MVE_SUMS(TINYET_MVE_PARTS);
    }
#else
    for (int32_t i = 0; i < p->row; i++) {
      const int32_t sum = value + (of_each ? all[i] * p->x_factor : rescaled(all[i], p));
      output[i] = (int16_t)tinyet_clamp(tinyet_requantize(sum, p->out_multiplier, p->out_shift), p->low, p->high);
    }
#endif
    all += p->row, output += p->row;
  }
}
