/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_reduce.h"

static inline int8_t finish(int32_t sum, const tinyet_sum_s8_params *p) {
  const int32_t value = tinyet_requantize(sum, p->multiplier, p->shift) + p->out_zero_point;
  return (int8_t)tinyet_clamp(value, INT8_MIN, INT8_MAX);
}

void tinyet_sum_s8(const int8_t *input, int8_t *output, const tinyet_sum_s8_params *params) {
  const tinyet_reduce_shape *const s = &params->shape;
  const int32_t inner = s->inner, rows = s->reduced_inner;
  const int32_t block = rows * inner, plane = s->middle * block;
  for (int32_t o = 0; o < s->outer; o++) {
    for (int32_t m = 0; m < s->middle; m++) {
      const int8_t *const first = input + m * block;
      int32_t c = 0;
      /* Four neighbours share one walk over the rows; their sums stay in registers. */
      for (; c + 4 <= inner; c += 4) {
        int32_t s0 = params->bias, s1 = s0, s2 = s0, s3 = s0;
        const int8_t *slab = first + c;
        for (int32_t i = 0; i < s->reduced_outer; i++) {
          const int8_t *x = slab;
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
      for (; c < inner; c++) {
        int32_t sum = params->bias;
        const int8_t *slab = first + c;
        for (int32_t i = 0; i < s->reduced_outer; i++) {
          const int8_t *x = slab;
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
