/* SPDX-License-Identifier: Apache-2.0 */
/* The greatest, or the least, over axes, for cores with Helium. The file that includes this has defined KERNEL, the
 * function's name, and what tinyet_select_mve_body.h asks for. */
#ifndef TINYET_SELECT_OVER_AXES_MVE_BODY_H
#define TINYET_SELECT_OVER_AXES_MVE_BODY_H

#include "tinyet_select_mve_body.h"

/* Of so many columns, up to a vector of them. */
static void columns(const element *input, element *output, int32_t there, const tinyet_select_mve_params *p) {
#if TINYET_MVE_ASM
  __asm__ volatile(
      "vctp." BITS " %[there]\n"
      "vpst\n"
      "vldr" LETTER "t." BITS " q0, [%[from]]\n"
      "dls lr, %[count]\n"
      "1:\n"
      "vpst\n"
      "vldr" LETTER "t." BITS " q1, [%[from]]\n"
      "add.w %[from], %[from], %[step]\n" SELECT ".s" BITS " q0, q0, q1\n"
      "le lr, 1b\n"
      "vpst\n"
      "vstr" LETTER "t." BITS " q0, [%[to]]\n"
      : [from] "+r"(input)
      : [to] "r"(output), [there] "r"(there), [count] "r"(p->count), [step] "r"(p->inner * (int32_t)sizeof *input)
      : "lr", "d0", "d1", "d2", "d3", "memory");
#else
  for (int32_t c = 0; c < there; c++) {
    element best = input[c];
    for (int32_t i = 1; i < p->count; i++) {
      const element value = input[i * p->inner + c];
      best = BEATS ? value : best;
    }
    output[c] = best;
  }
#endif
}

void KERNEL(const element *input, element *output, const tinyet_select_mve_params *params) {
  const int32_t inner = params->inner;
  for (int32_t n = params->outer; n != 0; n--, input += params->count * inner, output += inner) {
    if (inner == 1) {
      *output = (element)best_of(input, params->count);
    } else {
      for (int32_t c = 0; c < inner; c += TINYET_SELECT_LANES) {
        columns(input + c, output + c, inner - c < TINYET_SELECT_LANES ? inner - c : TINYET_SELECT_LANES, params);
      }
    }
  }
}

#endif
