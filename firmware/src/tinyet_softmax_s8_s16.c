/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_fixed_point.h"
#include "tinyet_softmax.h"

/* One column: elements `stride` apart. */
static void column(const int8_t *input, int16_t *output, const tinyet_softmax_s8_params *p) {
  const int32_t stride = p->shape.inner, span = p->shape.depth * stride;
  const TINYET_ROM int32_t *const exponentials = p->exponentials;
  const int32_t count = p->count, largest = tinyet_largest_s8(input, span, stride);
  const int32_t sum = tinyet_sum_of_exponentials(input, span, stride, largest, exponentials, count);
  const int32_t headroom = tinyet_leading_zeros((uint32_t)sum);
  const int32_t reciprocal = tinyet_reciprocal_of_sum(sum, headroom);
  /* 31 fraction bits of the exponential become 16, the sum's scale is undone: 15 to 27 bits, as the sum is at least 1. */
  const int32_t shift = 12 - headroom + 31 - 16;
  const uint32_t half = UINT32_C(1) << (shift - 1);
  for (int32_t i = 0; i < span; i += stride) {
    const int32_t below = largest - input[i];
    int32_t value = INT16_MIN;
    if (below < count) {
      const uint32_t share = (uint32_t)tinyet_high_mul_positive(reciprocal, exponentials[below]);
      value += (int32_t)((share + half) >> shift);
    }
    output[i] = (int16_t)(value > INT16_MAX ? INT16_MAX : value);
  }
}

void tinyet_softmax_s8_s16(const int8_t *input, int16_t *output, const tinyet_softmax_s8_params *params) {
  const tinyet_softmax_shape s = params->shape;
  for (int32_t n = 0; n < s.outer; n++) {
    for (int32_t i = 0; i < s.inner; i++) {
      column(input + i, output + i, params);
    }
    input += s.depth * s.inner;
    output += s.depth * s.inner;
  }
}
