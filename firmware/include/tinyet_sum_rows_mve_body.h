/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of rows, for cores with Helium. The file that includes this has defined
 *
 *   KERNEL            the function's name
 *   element           the type of the elements
 *   LETTER            its letter in loads and stores
 *   BITS              its bits
 *   NARROWED          instructions that saturate int16 in the lower halves of q1 to that type
 *   LEAST, GREATEST   the ends of that type */
#ifndef TINYET_SUM_ROWS_MVE_BODY_H
#define TINYET_SUM_ROWS_MVE_BODY_H

#include "tinyet_sum_mve.h"

/* Of so many rows, up to four. The last of them stands for those that are not there. */
static void rows_of(const element *from, element *to, int32_t there, const tinyet_sum_rows_mve_params *p) {
#if TINYET_MVE_ASM
  const element *second = from + (there > 1 ? p->count : 0);
  const element *third = second + (there > 2 ? p->count : 0), *fourth = third + (there > 3 ? p->count : 0);
  int32_t a = p->bias, b = a, c = a, d = a; /* in even registers */
  __asm__ volatile(
      "dlstp." BITS " lr, %[count]\n"
      "1:\n"
      "vldr" LETTER "." BITS " q0, [%[first]], #16\n"
      "vldr" LETTER "." BITS " q1, [%[second]], #16\n"
      "vaddva.s" BITS " %[a], q0\n"
      "vldr" LETTER "." BITS " q0, [%[third]], #16\n"
      "vaddva.s" BITS " %[b], q1\n"
      "vldr" LETTER "." BITS " q1, [%[fourth]], #16\n"
      "vaddva.s" BITS " %[c], q0\n"
      "vaddva.s" BITS " %[d], q1\n"
      "letp lr, 1b\n"
      : [first] "+r"(from), [second] "+r"(second), [third] "+r"(third), [fourth] "+r"(fourth), [a] "+Te"(a), [b] "+Te"(b),
        [c] "+Te"(c), [d] "+Te"(d)
      : [count] "r"(p->count)
      : "lr", "d0", "d1", "d2", "d3", "memory");
  __asm__ volatile(
      "vmov.32 q0[0], %[a]\n"
      "vmov.32 q0[1], %[b]\n"
      "vmov.32 q0[2], %[c]\n"
      "vmov.32 q0[3], %[d]\n"
      "vshr.s32 q1, q0, #31\n"
      "vqrdmlah.s32 q1, q0, %[multiplier]\n"
      "vrshl.s32 q1, %[shift]\n"
      "vqmovnb.s32 q1, q1\n"
      "vqadd.s16 q1, q1, %[zero]\n" NARROWED
      "vctp.32 %[there]\n"
      "vpst\n"
      "vstr" LETTER "t.32 q1, [%[to]]\n"
      :
      : [a] "r"(a), [b] "r"(b), [c] "r"(c), [d] "r"(d), [multiplier] "r"(p->multiplier), [shift] "r"(p->shift),
        [zero] "r"(p->zero_point), [there] "r"(there), [to] "l"(to)
      : "d0", "d1", "d2", "d3", "memory");
#else
  for (int32_t row = 0; row < there; row++, from += p->count) {
    int32_t sum = p->bias;
    for (int32_t i = 0; i < p->count; i++) {
      sum += from[i];
    }
    to[row] = (element)tinyet_clamp(tinyet_requantize(sum, p->multiplier, p->shift) + p->zero_point, LEAST, GREATEST);
  }
#endif
}

void KERNEL(const element *input, element *output, const tinyet_sum_rows_mve_params *params) {
  for (int32_t left = params->rows; left > 0; left -= 4, input += 4 * params->count, output += 4) {
    rows_of(input, output, left < 4 ? left : 4, params);
  }
}

#endif
