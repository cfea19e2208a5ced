/* SPDX-License-Identifier: Apache-2.0 */
/* Where the greatest value of each column is, for cores with Helium, eight columns at a time. The file that includes this has defined
 *
 *   KERNEL    the function's name
 *   element   the type of the elements
 *   LOAD      the instruction that loads eight of them as int16 */
#ifndef TINYET_ARGMAX_COLUMNS_MVE_BODY_H
#define TINYET_ARGMAX_COLUMNS_MVE_BODY_H

#include "tinyet_select_mve.h"

/* Of so many columns, up to eight. */
static void columns(const element *input, int32_t *output, int32_t there, const tinyet_argmax_params *p) {
#if TINYET_MVE_ASM
  int32_t at = 0, offset = 0; /* in an even register */
  /* q0: the greatest so far, q1: where it is. The count of lanes holds until LCTP. */
  __asm__ volatile(
      "dlstp.16 lr, %[there]\n" LOAD " q0, [%[from]]\n"
      "vmov.i16 q1, #0\n"
      "1:\n" LOAD " q2, [%[from]]\n"
      "add.w %[from], %[from], %[step]\n"
      "vptt.s16 gt, q2, q0\n"
      "vorrt q0, q2, q2\n"
      "vdupt.16 q1, %[at]\n"
      "add.w %[at], %[at], #1\n"
      "cmp.w %[at], %[count]\n"
      "bne.w 1b\n"
      "lctp\n"
      "vidup.u32 q0, %[offset], #8\n"
      "vmovlb.u16 q2, q1\n"
      "vmovlt.u16 q1, q1\n"
      "add.w %[at], %[there], #1\n"
      "lsr.w %[at], %[at], #1\n"
      "vctp.32 %[at]\n"
      "vpst\n"
      "vstrwt.32 q2, [%[to], q0]\n"
      "lsr.w %[at], %[there], #1\n"
      "add.w %[offset], %[to], #4\n"
      "vctp.32 %[at]\n"
      "vpst\n"
      "vstrwt.32 q1, [%[offset], q0]\n"
      : [from] "+l"(input), [at] "+&r"(at), [offset] "+&Te"(offset)
      : [to] "r"(output), [there] "r"(there), [count] "r"(p->count), [step] "r"(p->inner * (int32_t)sizeof *input)
      : "lr", "cc", "d0", "d1", "d2", "d3", "d4", "d5", "memory");
#else
  for (int32_t c = 0; c < there; c++) {
    int32_t found = 0;
    for (int32_t i = 1; i < p->count; i++) {
      found = input[i * p->inner + c] > input[found * p->inner + c] ? i : found;
    }
    output[c] = found;
  }
#endif
}

void KERNEL(const element *input, int32_t *output, const tinyet_argmax_params *params) {
  const int32_t inner = params->inner;
  for (int32_t n = params->outer; n != 0; n--, input += params->count * inner, output += inner) {
    for (int32_t c = 0; c < inner; c += 8) {
      columns(input + c, output + c, inner - c < 8 ? inner - c : 8, params);
    }
  }
}

#endif
