/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_reduce.h"

void tinyet_amax_s16(const int16_t *input, int16_t *output, const tinyet_reduce_params *params) {
  const tinyet_reduce_shape *const s = &params->shape;
  const int32_t inner = s->inner, rows = s->reduced_inner;
  const int32_t block = rows * inner, plane = s->middle * block;
  for (int32_t o = 0; o < s->outer; o++) {
    for (int32_t m = 0; m < s->middle; m++) {
      for (int32_t c = 0; c < inner; c++) {
        const int16_t *slab = input + m * block + c;
        int16_t best = *slab;
        for (int32_t i = 0; i < s->reduced_outer; i++) {
          const int16_t *x = slab;
          for (int32_t left = rows; left > 0; left--) {
            const int16_t value = *x;
            if (value > best) {
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
