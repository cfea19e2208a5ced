/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_elementwise_s16_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
/* q3: what is multiplied by. */
#define TINYET_MVE_PRODUCT(LOAD, STORE, OTHER) \
  LOAD("q0", "a") OTHER \
  "vmullb.s16 q2, q0, q3\n" \
  "vmullt.s16 q0, q0, q3\n" \
  TINYET_MVE_S16_SCALED("q1", "q2", "%[multiplier]", "%[shift]") \
  TINYET_MVE_S16_SCALED("q2", "q0", "%[multiplier]", "%[shift]") \
  TINYET_MVE_S16_JOINED("q1", "q2") STORE("q1")
#define TINYET_MVE_WALK(BEFORE, BODY, AFTER, COUNT) \
  __asm__ volatile( \
      TINYET_MVE_S16_BOUNDS BEFORE BODY AFTER \
      : [a] "+r"(from), [b] "+r"(with), [to] "+r"(to) \
      : [multiplier] "r"(p->multiplier), [shift] "r"(p->shift), [low] "r"(p->low), [high] "r"(p->high), \
        [value] "r"(value), [count] "r"(COUNT) \
      : "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d12", "d13", "d14", "d15", "memory")
#define TINYET_MVE_PRODUCTS(BEFORE, OTHER, OTHER_SOME) \
  TINYET_MVE_S16_ROW(BEFORE, TINYET_MVE_PRODUCT(TINYET_MVE_S16_LOAD, TINYET_MVE_S16_STORE, OTHER), \
                     TINYET_MVE_PRODUCT(TINYET_MVE_S16_LOAD_SOME, TINYET_MVE_S16_STORE_SOME, OTHER_SOME))
/* clang-format on */
#endif

void tinyet_mul_s16_mve(const int16_t *a, const int16_t *b, int16_t *output, const tinyet_mul_s16_mve_params *p) {
#if TINYET_MVE_ASM
  const int32_t eights = p->row >> 3, rest = p->row & 7;
#endif
  for (int32_t n = p->rows; n > 0; n--) {
#if TINYET_MVE_ASM
    const int16_t *from = a, *with = b;
    int16_t *to = output;
    const int32_t value = *b;
    if (p->per_row) {
      TINYET_MVE_PRODUCTS("vdup.16 q3, %[value]\n", "", "");
    } else {
      TINYET_MVE_PRODUCTS("", TINYET_MVE_S16_LOAD("q3", "b"), TINYET_MVE_S16_LOAD_SOME("q3", "b"));
    }
#else
    for (int32_t i = 0; i < p->row; i++) {
      const int32_t product = a[i] * b[p->per_row ? 0 : i];
      output[i] = (int16_t)tinyet_clamp(tinyet_requantize(product, p->multiplier, p->shift), p->low, p->high);
    }
#endif
    a += p->row, b += p->b_row, output += p->row;
  }
}
