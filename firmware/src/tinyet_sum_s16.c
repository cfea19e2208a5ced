/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_reduce.h"

static inline int16_t finish(int32_t sum, const tinyet_sum_s16_params *p) {
  const int32_t value = tinyet_requantize(sum, p->multiplier, p->shift);
  return (int16_t)tinyet_clamp(value, INT16_MIN, INT16_MAX);
}

void tinyet_sum_s16(const int16_t *input, int16_t *output, const tinyet_sum_s16_params *params) {
  const tinyet_reduce_shape *const s = &params->shape;
  const int32_t inner = s->inner, rows = s->reduced_inner;
  const int32_t block = rows * inner, plane = s->middle * block;
  for (int32_t o = 0; o < s->outer; o++) {
    for (int32_t m = 0; m < s->middle; m++) {
      const int16_t *const first = input + m * block;
      for (int32_t c = 0; c < inner; c++) {
        int32_t sum = 0;
        const int16_t *slab = first + c;
        for (int32_t i = 0; i < s->reduced_outer; i++) {
          const int16_t *x = slab;
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
