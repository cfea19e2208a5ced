/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_elementwise_s16_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
#define TINYET_MVE_PRODUCT(LOAD, STORE) \
  LOAD("q0", "a") LOAD("q1", "b") \
  "vmullb.s16 q2, q0, q1\n" \
  "vmullt.s16 q0, q0, q1\n" \
  TINYET_MVE_S16_SCALED("q1", "q2", "%[multiplier]", "%[shift]") \
  TINYET_MVE_S16_SCALED("q2", "q0", "%[multiplier]", "%[shift]") \
  TINYET_MVE_S16_JOINED("q1", "q2") STORE("q1")
#define TINYET_MVE_WALK(BEFORE, BODY, AFTER, COUNT) \
  __asm__ volatile( \
      TINYET_MVE_S16_BOUNDS BEFORE BODY AFTER \
      : [a] "+r"(a), [b] "+r"(b), [to] "+r"(output) \
      : [multiplier] "r"(p->multiplier), [shift] "r"(p->shift), [low] "r"(p->low), [high] "r"(p->high), [count] "r"(COUNT) \
      : "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d12", "d13", "d14", "d15", "memory")
/* clang-format on */
#endif

void tinyet_mul_s16_same_mve(const int16_t *a, const int16_t *b, int16_t *output, const tinyet_mul_s16_mve_params *p) {
#if TINYET_MVE_ASM
  const int32_t eights = p->count >> 3, rest = p->count & 7;
  if (eights != 0) {
    TINYET_MVE_WALK("dls lr, %[count]\n1:\n", TINYET_MVE_PRODUCT(TINYET_MVE_S16_LOAD, TINYET_MVE_S16_STORE), "le lr, 1b\n",
                    eights);
  }
  if (rest != 0) {
    TINYET_MVE_WALK("vctp.16 %[count]\n", TINYET_MVE_PRODUCT(TINYET_MVE_S16_LOAD_SOME, TINYET_MVE_S16_STORE_SOME), "", rest);
  }
#else
  for (int32_t i = 0; i < p->count; i++) {
    output[i] = (int16_t)tinyet_clamp(tinyet_requantize(a[i] * b[i], p->multiplier, p->shift), p->low, p->high);
  }
#endif
}
