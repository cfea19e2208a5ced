/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_lut_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
/* q7 has 127, the lower bits, q6 one more. The line from `here` to `next` is (128 - bits) * here + bits * next: with products of
 * even and odd values no difference leaves int16. */
#define TINYET_MVE_EIGHT(LOAD, STORE) \
  LOAD " q0, [%[from]], #16\n" \
  "vadd.i16 q1, q0, %[half]\n" \
  "vshr.u16 q1, q1, #7\n" \
  "vldrh.u16 q2, [%[table], q1, uxtw #1]\n" \
  "vand q0, q0, q7\n" \
  "vldrh.u16 q3, [%[next], q1, uxtw #1]\n" \
  "vsub.i16 q1, q6, q0\n" \
  "vmullb.s16 q4, q2, q1\n" \
  "vmullt.s16 q2, q2, q1\n" \
  "vmullb.s16 q1, q3, q0\n" \
  "vmullt.s16 q3, q3, q0\n" \
  "vadd.i32 q4, q4, q1\n" \
  "vadd.i32 q2, q2, q3\n" \
  "vrshrnb.i32 q4, q4, #7\n" \
  "vrshrnt.i32 q4, q2, #7\n" \
  STORE " q4, [%[to]], #16\n"
#define TINYET_MVE_WALK(BEFORE, BODY, AFTER, COUNT) \
  __asm__ volatile( \
      "vmov.i16 q7, #127\n" \
      "vmov.i16 q6, #128\n" BEFORE BODY AFTER \
      : [from] "+r"(input), [to] "+r"(output) \
      : [count] "r"(COUNT), [table] "r"(table), [next] "r"(table + 1), [half] "r"(0x8000) \
      : "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d12", "d13", "d14", "d15", "memory")
/* clang-format on */
#endif

void tinyet_lut_s16_mve(const int16_t *input, int16_t *output, const tinyet_lut_s16_params *params) {
  const int16_t *const table = params->table;
#if TINYET_MVE_ASM
  const int32_t eights = params->count >> 3, rest = params->count & 7;
  if (eights != 0) {
    TINYET_MVE_WALK("dls lr, %[count]\n1:\n", TINYET_MVE_EIGHT("vldrh.u16", "vstrh.16"), "le lr, 1b\n", eights);
  }
  if (rest != 0) {
    TINYET_MVE_WALK("vctp.16 %[count]\n", TINYET_MVE_EIGHT("vpst\nvldrht.u16", "vpst\nvstrht.16"), "", rest);
  }
#else
  for (int32_t i = 0; i < params->count; i++) {
    output[i] = (int16_t)tinyet_lut_interpolate_s16(table, input[i]);
  }
#endif
}
