/* SPDX-License-Identifier: Apache-2.0 */
/* The greatest or least over axes, for any type of element: one walk, of which each kernel file makes its function. */
#ifndef TINYET_REDUCE_EXTREMUM_H
#define TINYET_REDUCE_EXTREMUM_H

#include "tinyet_reduce.h"

/* NAME(input, output, params): of equal elements the first. REPLACES is an expression of value and best that says whether
 * the one takes the other's place. */
#define TINYET_DEFINE_REDUCE_EXTREMUM(NAME, ELEMENT, REPLACES)                           \
  void NAME(const ELEMENT *input, ELEMENT *output, const tinyet_reduce_params *params) { \
    const tinyet_reduce_shape *const s = &params->shape;                                 \
    const int32_t inner = s->inner, rows = s->reduced_inner;                             \
    const int32_t block = rows * inner, plane = s->middle * block;                       \
    for (int32_t o = 0; o < s->outer; o++) {                                             \
      for (int32_t m = 0; m < s->middle; m++) {                                          \
        for (int32_t c = 0; c < inner; c++) {                                            \
          const ELEMENT *slab = input + m * block + c;                                   \
          ELEMENT best = *slab;                                                          \
          for (int32_t i = 0; i < s->reduced_outer; i++) {                               \
            const ELEMENT *x = slab;                                                     \
            for (int32_t left = rows; left > 0; left--) {                                \
              const ELEMENT value = *x;                                                  \
              if (REPLACES) {                                                            \
                best = value;                                                            \
              }                                                                          \
              x += inner;                                                                \
            }                                                                            \
            slab += plane;                                                               \
          }                                                                              \
          *output++ = best;                                                              \
        }                                                                                \
      }                                                                                  \
      input += s->reduced_outer * plane;                                                 \
    }                                                                                    \
  }

#endif
