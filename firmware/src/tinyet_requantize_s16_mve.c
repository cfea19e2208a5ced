/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_elementwise_s16_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
#define TINYET_MVE_TO_THE_RIGHT(TO, FROM) TINYET_MVE_S16_SCALED(TO, FROM, "%[multiplier]", "%[shift]")
#define TINYET_MVE_TO_THE_LEFT(TO, FROM) \
  "vrshl.s32 " FROM ", %[shift]\n" \
  "vqrdmulh.s32 " TO ", " FROM ", %[multiplier]\n"
#define TINYET_MVE_RESCALED(LOAD, STORE, SCALED) \
  LOAD("q0", "from") \
  "vmovlb.s16 q1, q0\n" \
  "vmovlt.s16 q0, q0\n" SCALED("q2", "q1") SCALED("q1", "q0") \
  TINYET_MVE_S16_JOINED("q2", "q1") STORE("q2")
#define TINYET_MVE_WALK(BEFORE, BODY, AFTER, COUNT) \
  __asm__ volatile( \
      TINYET_MVE_S16_BOUNDS BEFORE BODY AFTER \
      : [from] "+r"(input), [to] "+r"(output) \
      : [multiplier] "r"(p->multiplier), [shift] "r"(p->shift), [low] "r"(p->clamp_low), [high] "r"(p->clamp_high), \
        [count] "r"(COUNT) \
      : "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d12", "d13", "d14", "d15", "memory")
#define TINYET_MVE_RESCALE(SCALED) \
  if (eights != 0) { \
    TINYET_MVE_WALK("dls lr, %[count]\n1:\n", TINYET_MVE_RESCALED(TINYET_MVE_S16_LOAD, TINYET_MVE_S16_STORE, SCALED), \
                    "le lr, 1b\n", eights); \
  } \
  if (rest != 0) { \
    TINYET_MVE_WALK("vctp.16 %[count]\n", \
                    TINYET_MVE_RESCALED(TINYET_MVE_S16_LOAD_SOME, TINYET_MVE_S16_STORE_SOME, SCALED), "", rest); \
  }
/* clang-format on */
#endif

void tinyet_requantize_s16_mve(const int16_t *input, int16_t *output, const tinyet_requantize_params *p) {
#if TINYET_MVE_ASM
  const int32_t eights = p->count >> 3, rest = p->count & 7;
  if (p->shift < 0) {
    TINYET_MVE_RESCALE(TINYET_MVE_TO_THE_RIGHT);
  } else {
    TINYET_MVE_RESCALE(TINYET_MVE_TO_THE_LEFT);
  }
#else
  for (int32_t i = 0; i < p->count; i++) {
    const int32_t value = tinyet_requantize(input[i], p->multiplier, p->shift);
    output[i] = (int16_t)tinyet_clamp(value, p->clamp_low, p->clamp_high);
  }
#endif
}
