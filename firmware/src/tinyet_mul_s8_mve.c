/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_elementwise_mve.h"
#include "tinyet_elementwise_s16_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
/* q3: what is multiplied by, less its zero point. */
#define TINYET_MVE_PRODUCT(LOAD, STORE, OTHER) \
  LOAD("q0", "from") OTHER \
  "vsub.i16 q0, q0, r9\n" \
  "vmullb.s16 q2, q0, q3\n" \
  "vmullt.s16 q0, q0, q3\n" \
  TINYET_MVE_S16_SCALED("q1", "q2", "r4", "r5") \
  TINYET_MVE_S16_SCALED("q2", "q0", "r4", "r5") \
  TINYET_MVE_S16_SATURATED("q1", "q2") \
  "vqadd.s16 q1, q1, r10\n" TINYET_MVE_S16_BOUNDED("q1") STORE("q1")
/* r4, r5: multiplier, shift; r6, r8: bounds; r9, r10: the zero points of a and of the output; r12: b's, or a row's value less it. */
#define TINYET_MVE_WALK(BEFORE, BODY, AFTER) \
  __asm__ volatile( \
      "ldm.w %[state], {r4, r5, r6, r8, r9, r10, r12, lr}\n" \
      "vdup.16 q6, r6\n" \
      "vdup.16 q7, r8\n" BEFORE BODY AFTER \
      : [from] "+l"(from), [with] "+l"(with), [to] "+l"(to) \
      : [state] "r"(state) \
      : "r4", "r5", "r6", "r8", "r9", "r10", "r12", "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d12", "d13", "d14", \
        "d15", "memory")
#define TINYET_MVE_PRODUCTS(BEFORE, OTHER, OTHER_SOME) \
  if (eights != 0) { \
    state[7] = eights; \
    TINYET_MVE_WALK(BEFORE "dls lr, lr\n1:\n", \
                    TINYET_MVE_PRODUCT(TINYET_MVE_S8_LOAD, TINYET_MVE_S8_STORE, OTHER), "le lr, 1b\n"); \
  } \
  if (rest != 0) { \
    state[7] = rest; \
    TINYET_MVE_WALK(BEFORE "vctp.16 lr\n", \
                    TINYET_MVE_PRODUCT(TINYET_MVE_S8_LOAD_SOME, TINYET_MVE_S8_STORE_SOME, OTHER_SOME), ""); \
  }
#define TINYET_MVE_LESS_ZERO "vsub.i16 q3, q3, r12\n"
/* clang-format on */
#endif

void tinyet_mul_s8_mve(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_mve_params *p) {
  const int32_t row = p->walk.row;
#if TINYET_MVE_ASM
  const int32_t eights = row >> 3, rest = row & 7;
#endif
  for (int32_t n = p->walk.rows; n > 0; n--) {
#if TINYET_MVE_ASM
    const int8_t *from = a, *with = b;
    int8_t *to = output;
    const int32_t other = p->walk.per_row ? *b - p->b_zero_point : p->b_zero_point;
    int32_t state[] = {p->multiplier, p->shift, p->low, p->high, p->a_zero_point, p->zero_point, other, 0};
    if (p->walk.per_row) {
      TINYET_MVE_PRODUCTS("vdup.16 q3, r12\n", "", "");
    } else {
      TINYET_MVE_PRODUCTS("", TINYET_MVE_S8_LOAD("q3", "with") TINYET_MVE_LESS_ZERO,
                          TINYET_MVE_S8_LOAD_SOME("q3", "with") TINYET_MVE_LESS_ZERO);
    }
#else
    for (int32_t i = 0; i < row; i++) {
      const int32_t product = (a[i] - p->a_zero_point) * (b[p->walk.per_row ? 0 : i] - p->b_zero_point);
      output[i] = (int8_t)tinyet_clamp(tinyet_requantize(product, p->multiplier, p->shift) + p->zero_point, p->low, p->high);
    }
#endif
    a += row, b += p->walk.step, output += row;
  }
}
