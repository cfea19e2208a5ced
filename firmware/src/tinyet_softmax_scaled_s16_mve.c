/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_softmax_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
/* q3: the factor of 30 bits times 4. With exponentials times 2^16, upper words of products have 14 bits less, which a rounding shift
 * to the right by one bit and more cannot see. */
#define TINYET_MVE_SCALED_SHARES(LOAD, STORE) \
  LOAD " q0, [%[values]]\n" \
  "vshllb.u16 q1, q0, #16\n" \
  "vshllt.u16 q2, q0, #16\n" \
  "vmulh.u32 q1, q1, q3\n" \
  "vmulh.u32 q2, q2, q3\n" \
  "vrshl.u32 q1, %[left]\n" \
  "vrshl.u32 q2, %[left]\n" \
  "vqmovnb.s32 q0, q1\n" \
  "vqmovnt.s32 q0, q2\n" \
  STORE " q0, [%[values]], #16\n"
#define TINYET_MVE_ROW_OF_SCALED_SHARES(BEFORE, BODY, AFTER, COUNT) \
  __asm__ volatile( \
      "vdup.32 q3, %[factor]\n" BEFORE BODY AFTER \
      : [values] "+r"(values) \
      : [count] "r"(COUNT), [factor] "r"(factor), [left] "r"(14 - shift) \
      : "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "memory")
/* clang-format on */
#endif

/* Values times the reciprocal and the factor to output steps, shifted to the right; not above the largest int16. */
static void shares(int16_t *values, int32_t count, int32_t reciprocal, int32_t headroom,
                   const tinyet_softmax_scaled_s16_params *params) {
  const int32_t shift = params->out_shift - headroom;
#if TINYET_MVE_ASM
  const uint32_t factor = (uint32_t)(reciprocal * params->out_multiplier) * 4u;
  const int32_t eights = count >> 3, rest = count & 7;
  if (eights != 0) {
    TINYET_MVE_ROW_OF_SCALED_SHARES("dls lr, %[count]\n1:\n", TINYET_MVE_SCALED_SHARES("vldrh.u16", "vstrh.16"), "le lr, 1b\n",
                                    eights);
  }
  if (rest != 0) {
    TINYET_MVE_ROW_OF_SCALED_SHARES("vctp.16 %[count]\n", TINYET_MVE_SCALED_SHARES("vpst\nvldrht.u16", "vpst\nvstrht.16"), "",
                                    rest);
  }
#else
  for (int32_t i = 0; i < count; i++) {
    const int32_t share = tinyet_requantize_s64(values[i] * reciprocal, params->out_multiplier, shift);
    values[i] = (int16_t)tinyet_clamp(share, 0, INT16_MAX);
  }
#endif
}

#define KERNEL tinyet_softmax_scaled_s16_mve
#define PARAMS tinyet_softmax_scaled_s16_params
#define softmax_of(params) (&(params)->softmax)
#include "tinyet_softmax_s16_mve_body.h"
