/* SPDX-License-Identifier: Apache-2.0 */
/* The greatest or least over axes, for elements of any type. The file that includes this has defined
 *
 *   KERNEL     the function's name
 *   element    the type of the elements
 *   REPLACES   an expression of `value` and `best` that says whether the one takes the other's place; of equal elements the
 *              first one stays */
#ifndef TINYET_REDUCE_EXTREMUM_BODY_H
#define TINYET_REDUCE_EXTREMUM_BODY_H

#include "tinyet_reduce.h"

void KERNEL(const element *input, element *output, const tinyet_reduce_params *params) {
  const tinyet_reduce_shape *const s = &params->shape;
  const int32_t inner = s->inner, rows = s->reduced_inner;
  const int32_t block = rows * inner, plane = s->middle * block;
  for (int32_t o = 0; o < s->outer; o++) {
    for (int32_t m = 0; m < s->middle; m++) {
      for (int32_t c = 0; c < inner; c++) {
        const element *slab = input + m * block + c;
        element best = *slab;
        for (int32_t i = 0; i < s->reduced_outer; i++) {
          const element *x = slab;
          for (int32_t left = rows; left > 0; left--) {
            const element value = *x;
            if (REPLACES) {
              best = value;
            }
            x += inner;
          }
          slab += plane;
        }
        *output++ = best;
      }
    }
    input += s->reduced_outer * plane;
  }
}

#endif
