/* SPDX-License-Identifier: Apache-2.0 */
/* Where the greatest value of a row is, for cores with Helium. The file that includes this has defined KERNEL, the
 * function's name, and what tinyet_select_mve_body.h asks for. */
#ifndef TINYET_ARGMAX_MVE_BODY_H
#define TINYET_ARGMAX_MVE_BODY_H

#include "tinyet_select_mve_body.h"

/* The first place of a value that is there. */
static inline int32_t place_of(const element *row, int32_t value, int32_t count) {
#if TINYET_MVE_ASM
  const element *at = row;
  int32_t found; /* two bytes' bits are a lane of int16 */
  __asm__ volatile(
      "1:\n"
      "vctp." BITS " %[count]\n"
      "vpstt\n"
      "vldr" LETTER "t." BITS " q0, [%[at]], #16\n"
      "vcmpt.i" BITS " eq, q0, %[value]\n"
      "vmrs %[found], p0\n"
      "sub.w %[count], %[count], #16/(" BITS "/8)\n"
      "cmp.w %[found], #0\n"
      "beq.w 1b\n"
      "rbit %[found], %[found]\n"
      "clz %[found], %[found]\n"
      : [at] "+r"(at), [count] "+r"(count), [found] "=&r"(found)
      : [value] "r"(value)
      : "cc", "d0", "d1", "memory");
  return (int32_t)(at - row) - TINYET_SELECT_LANES + found / (int32_t)sizeof(element);
#else
  int32_t found = 0;
  while (found < count - 1 && row[found] != value) {
    found++;
  }
  return found;
#endif
}

void KERNEL(const element *input, int32_t *output, const tinyet_argmax_params *params) {
  const int32_t count = params->count;
  for (int32_t n = params->outer; n != 0; n--, input += count) {
    *output++ = place_of(input, best_of(input, count), count);
  }
}

#endif
