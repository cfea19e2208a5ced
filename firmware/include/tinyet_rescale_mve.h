/* SPDX-License-Identifier: Apache-2.0 */
/* Integers of another scale, zero point or size for cores with Helium, eight at a time: see tinyet_elementwise_s16_mve.h. */
#ifndef TINYET_RESCALE_MVE_H
#define TINYET_RESCALE_MVE_H

#include "tinyet_elementwise_s16_mve.h"

/* clang-format off */
/* Text for eight values, and for the last ones: TINYET_MVE_OF(..., ) and TINYET_MVE_OF(..., _SOME). q0 has what was read, less its
 * zero point; q2 what is written. */
#define TINYET_MVE_S16_OPERAND(SOME) TINYET_MVE_S16_LOAD##SOME("q0", "from")
#define TINYET_MVE_S8_OPERAND(SOME) TINYET_MVE_S8_LOAD##SOME("q0", "from") "vsub.i16 q0, q0, %[from_zero]\n"
#define TINYET_MVE_S16_RESULT(SOME) TINYET_MVE_S16_BOUNDED("q2") TINYET_MVE_S16_STORE##SOME("q2")
#define TINYET_MVE_S8_RESULT(SOME) "vqadd.s16 q2, q2, %[to_zero]\n" TINYET_MVE_S16_BOUNDED("q2") TINYET_MVE_S8_STORE##SOME("q2")

#if TINYET_MVE_ASM
#define TINYET_MVE_RESCALED(OPERAND, RESULT, SCALED) \
  OPERAND \
  "vmovlb.s16 q1, q0\n" \
  "vmovlt.s16 q0, q0\n" SCALED("q2", "q1", "%[multiplier]", "%[shift]") SCALED("q1", "q0", "%[multiplier]", "%[shift]") \
  TINYET_MVE_S16_SATURATED("q2", "q1") RESULT
#define TINYET_MVE_RESCALE_WALK(BEFORE, BODY, AFTER, COUNT) \
  __asm__ volatile( \
      TINYET_MVE_S16_BOUNDS BEFORE BODY AFTER \
      : [from] "+l"(input), [to] "+l"(output) \
      : [multiplier] "r"(p->multiplier), [shift] "r"(p->shift), [low] "r"(p->clamp_low), [high] "r"(p->clamp_high), \
        [from_zero] "r"(p->in_zero_point), [to_zero] "r"(p->out_zero_point), [count] "r"(COUNT) \
      : "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d12", "d13", "d14", "d15", "memory")
#define TINYET_MVE_RESCALE(OPERAND, RESULT, SCALED) \
  if (eights != 0) { \
    TINYET_MVE_RESCALE_WALK("dls lr, %[count]\n1:\n", TINYET_MVE_RESCALED(OPERAND(), RESULT(), SCALED), "le lr, 1b\n", eights); \
  } \
  if (rest != 0) { \
    TINYET_MVE_RESCALE_WALK("vctp.16 %[count]\n", TINYET_MVE_RESCALED(OPERAND(_SOME), RESULT(_SOME), SCALED), "", rest); \
  }
#define TINYET_MVE_REQUANTIZE(NAME, FROM, TO, OPERAND, RESULT) \
  void NAME(const FROM *input, TO *output, const tinyet_requantize_params *p) { \
    const int32_t eights = p->count >> 3, rest = p->count & 7; \
    if (p->shift < 0) { \
      TINYET_MVE_RESCALE(OPERAND, RESULT, TINYET_MVE_S16_SCALED) \
    } else { \
      TINYET_MVE_RESCALE(OPERAND, RESULT, TINYET_MVE_S16_SCALED_LEFT) \
    } \
  }
#else
#define TINYET_MVE_REQUANTIZE(NAME, FROM, TO, OPERAND, RESULT) \
  void NAME(const FROM *input, TO *output, const tinyet_requantize_params *p) { \
    for (int32_t i = 0; i < p->count; i++) { \
      const int32_t value = tinyet_requantize(input[i] - p->in_zero_point, p->multiplier, p->shift); \
      output[i] = (TO)tinyet_clamp(value + p->out_zero_point, p->clamp_low, p->clamp_high); \
    } \
  }
#endif
/* clang-format on */

#endif
