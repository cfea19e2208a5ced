/* SPDX-License-Identifier: Apache-2.0 */
/* Index of the greatest element, for elements of any type. The file that includes this has defined
 *
 *   KERNEL     the function's name
 *   element    the type of the elements
 *   REPLACES   an expression of `value` and `best` that says whether the one takes the other's place */
#ifndef TINYET_ARGMAX_BODY_H
#define TINYET_ARGMAX_BODY_H

#include "tinyet_argmax.h"

void KERNEL(const element *input, int32_t *output, const tinyet_argmax_params *params) {
  const int32_t inner = params->inner;
  for (int32_t o = 0; o < params->outer; o++) {
    for (int32_t c = 0; c < inner; c++) {
      const element *x = input + c;
      element best = *x;
      int32_t found = 0;
      for (int32_t i = 1; i < params->count; i++) {
        x += inner;
        const element value = *x;
        if (REPLACES) {
          best = value;
          found = i;
        }
      }
      *output++ = found;
    }
    input += params->count * inner;
  }
}

#endif
