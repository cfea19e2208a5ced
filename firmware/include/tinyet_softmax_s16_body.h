/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax of int16 along the middle axis. The file that includes this has defined KERNEL, the function's name, PARAMS,
 * the type of its parameters, `softmax_of`, the tinyet_softmax_s16_params of these, and `probability`, a function of an
 * exponential times the reciprocal of the sum (Q.30), the sum's leading zeros and the parameters, that gives the output. */
#ifndef TINYET_SOFTMAX_S16_BODY_H
#define TINYET_SOFTMAX_S16_BODY_H

#include "tinyet_lut.h"
#include "tinyet_softmax.h"

/* One column: elements `stride` apart. The output holds the exponentials, Q0.15, in between. */
static void column(const int16_t *input, int16_t *output, const PARAMS *params) {
  const tinyet_softmax_s16_params *const p = softmax_of(params);
  const int32_t stride = p->shape.inner, span = p->shape.depth * stride;
  int32_t largest = INT16_MIN;
  for (int32_t i = 0; i < span; i += stride) {
    largest = input[i] > largest ? input[i] : largest;
  }
  int32_t sum = 0; /* Q16.15 */
  for (int32_t i = 0; i < span; i += stride) {
    const int32_t scaled = tinyet_requantize(input[i] - largest, p->multiplier, p->shift) + INT16_MAX;
    const int32_t value = tinyet_lut_interpolate_s16(p->exponentials, tinyet_clamp(scaled, INT16_MIN, INT16_MAX));
    output[i] = (int16_t)value;
    sum += value;
  }
  const int32_t headroom = tinyet_leading_zeros((uint32_t)sum);
  /* The sum as 1 + x with 16 fraction bits of x, which the table takes less 32768. */
  const int32_t fraction =
      (int32_t)((((uint32_t)sum << (headroom - 1)) + (1u << 13)) >> 14) - (INT32_C(1) << 16) - (INT32_C(1) << 15);
  const int32_t reciprocal = tinyet_lut_interpolate_s16(p->reciprocals, tinyet_clamp(fraction, INT16_MIN, INT16_MAX));
  for (int32_t i = 0; i < span; i += stride) {
    output[i] = (int16_t)tinyet_clamp(probability(output[i] * reciprocal, headroom, params), 0, INT16_MAX);
  }
}

typedef int16_t element;
#define shape_of(params) (softmax_of(params)->shape)
#include "tinyet_softmax_integer_body.h"

#endif
