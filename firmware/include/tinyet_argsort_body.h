/* SPDX-License-Identifier: Apache-2.0 */
/* The order of elements of any type. The file that includes this has defined
 *
 *   KERNEL     the function's name
 *   element    the type of the elements
 *   GREATER(a, b), which counts a NaN as greater than any number */
#ifndef TINYET_ARGSORT_BODY_H
#define TINYET_ARGSORT_BODY_H

#include "tinyet_argsort.h"

void KERNEL(const element *input, int32_t *output, const tinyet_argsort_params *params) {
  const int32_t inner = params->inner, size = params->size, count = params->count;
  const int32_t descending = params->descending;
  for (int32_t o = 0; o < params->outer; o++) {
    for (int32_t c = 0; c < inner; c++) {
      const element *const x = input + c;
      int32_t *const found = output + c;
      int32_t held = 0;
      for (int32_t i = 0; i < size; i++) {
        const element value = x[i * inner];
        /* From the last that is held on, what comes behind this one makes room for it. */
        int32_t at = held;
        while (at > 0) {
          const element other = x[found[(at - 1) * inner] * inner];
          if (descending != 0 ? !(GREATER(value, other)) : !(GREATER(other, value))) {
            break;
          }
          if (at < count) {
            found[at * inner] = found[(at - 1) * inner];
          }
          at--;
        }
        if (at < count) {
          found[at * inner] = i;
          held += held < count ? 1 : 0;
        }
      }
    }
    input += size * inner;
    output += count * inner;
  }
}

#endif
