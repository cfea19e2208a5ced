/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over axes of integers of any type. The file that includes this has defined
 *
 *   KERNEL                the function's name
 *   element               the type of the elements
 *   kernel_params         its parameters
 *   START                 what a sum begins with, an expression of `params`
 *   QUADS                 1: four neighbours share one walk over the rows, and their sums stay in registers; 0: one by one
 *   finish(sum, params)   the output */
#ifndef TINYET_SUM_BODY_H
#define TINYET_SUM_BODY_H

#include "tinyet_reduce.h"

#if defined(__AVR__) && QUADS
#include "tinyet_four_sums.h"

void KERNEL(const element *input, element *output, const kernel_params *params) {
  const tinyet_reduce_shape *const s = &params->shape;
  const tinyet_extent inner = TINYET_EXTENT(s->inner), columns = TINYET_EXTENT(s->reduced_inner);
  const tinyet_extent block = columns * inner, plane = TINYET_EXTENT(s->middle) * block;
  tinyet_four_sums four = {TINYET_EXTENT(s->reduced_outer), columns, inner, plane - block, {0u, 0u, 0u, 0u}};
  const int32_t start = START - ((int32_t)(four.rows * columns) << 7);
  for (tinyet_extent o = TINYET_EXTENT(s->outer); o > 0; o--) {
    const element *first = input;
    for (tinyet_extent m = TINYET_EXTENT(s->middle); m > 0; m--) {
      for (tinyet_extent c = 0; c < inner;) {
        tinyet_add_four(first + c, &four); /* bytes behind the last of them can be read, and count nothing */
        for (uint8_t k = 0u; k < 4u && c < inner; k++, c++) {
          *output++ = finish((int32_t)four.sums[k] + start, params);
        }
      }
      first += block;
    }
    input += four.rows * plane;
  }
}
#else
void KERNEL(const element *input, element *output, const kernel_params *params) {
  const tinyet_reduce_shape *const s = &params->shape;
  const int32_t inner = s->inner, rows = s->reduced_inner;
  const int32_t block = rows * inner, plane = s->middle * block;
  for (int32_t o = 0; o < s->outer; o++) {
    for (int32_t m = 0; m < s->middle; m++) {
      const element *const first = input + m * block;
      int32_t c = 0;
#if QUADS
      for (; c + 4 <= inner; c += 4) {
        int32_t s0 = START, s1 = s0, s2 = s0, s3 = s0;
        const element *slab = first + c;
        for (int32_t i = 0; i < s->reduced_outer; i++) {
          const element *x = slab;
          for (int32_t left = rows; left > 0; left--) {
            s0 += x[0];
            s1 += x[1];
            s2 += x[2];
            s3 += x[3];
            x += inner;
          }
          slab += plane;
        }
        output[0] = finish(s0, params);
        output[1] = finish(s1, params);
        output[2] = finish(s2, params);
        output[3] = finish(s3, params);
        output += 4;
      }
#endif
      for (; c < inner; c++) {
        int32_t sum = START;
        const element *slab = first + c;
        for (int32_t i = 0; i < s->reduced_outer; i++) {
          const element *x = slab;
          for (int32_t left = rows; left > 0; left--) {
            sum += *x;
            x += inner;
          }
          slab += plane;
        }
        *output++ = finish(sum, params);
      }
    }
    input += s->reduced_outer * plane;
  }
}
#endif

#endif
