/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_softmax_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
#define TINYET_MVE_SHARES(LOAD, STORE) \
  LOAD " q0, [%[values]]\n" \
  "vmullb.s16 q1, q0, q3\n" \
  "vmullt.s16 q2, q0, q3\n" \
  "vrshl.s32 q1, %[left]\n" \
  "vrshl.s32 q2, %[left]\n" \
  "vqmovnb.s32 q0, q1\n" \
  "vqmovnt.s32 q0, q2\n" \
  STORE " q0, [%[values]], #16\n"
#define TINYET_MVE_ROW_OF_SHARES(BEFORE, BODY, AFTER, COUNT) \
  __asm__ volatile( \
      "vdup.16 q3, %[reciprocal]\n" BEFORE BODY AFTER \
      : [values] "+r"(values) \
      : [count] "r"(COUNT), [reciprocal] "r"(reciprocal), [left] "r"(-shift) \
      : "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "memory")
/* clang-format on */
#endif

/* Values times the reciprocal, shifted to the right; not above the largest int16. */
static void shares(int16_t *values, int32_t count, int32_t reciprocal, int32_t headroom,
                   const tinyet_softmax_s16_params *params) {
  const int32_t shift = 31 - headroom;
  (void)params;
#if TINYET_MVE_ASM
  const int32_t eights = count >> 3, rest = count & 7;
  if (eights != 0) {
    TINYET_MVE_ROW_OF_SHARES("dls lr, %[count]\n1:\n", TINYET_MVE_SHARES("vldrh.u16", "vstrh.16"), "le lr, 1b\n", eights);
  }
  if (rest != 0) {
    TINYET_MVE_ROW_OF_SHARES("vctp.16 %[count]\n", TINYET_MVE_SHARES("vpst\nvldrht.u16", "vpst\nvstrht.16"), "", rest);
  }
#else
  for (int32_t i = 0; i < count; i++) {
    const int32_t share = (values[i] * reciprocal + (INT32_C(1) << (shift - 1))) >> shift;
    values[i] = (int16_t)tinyet_clamp(share, 0, INT16_MAX);
  }
#endif
}

#define KERNEL tinyet_softmax_s16_mve
#define PARAMS tinyet_softmax_s16_params
#define softmax_of(params) (params)
#include "tinyet_softmax_s16_mve_body.h"
