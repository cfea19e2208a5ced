/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_fixed_point.h"
#include "tinyet_softmax.h"

/* One column: `depth` elements `stride` apart. */
static void column(const int8_t *input, int8_t *output, int32_t depth, int32_t stride,
                   const TINYET_ROM int32_t *exponentials, int32_t count) {
  const int32_t span = depth * stride;
  const int32_t largest = tinyet_largest_s8(input, span, stride);
  const int32_t sum = tinyet_sum_of_exponentials(input, span, stride, largest, exponentials, count);
  const int32_t headroom = tinyet_leading_zeros((uint32_t)sum);
  const int32_t reciprocal = tinyet_reciprocal_of_sum(sum, headroom);
  /* 31 fraction bits of the exponential become 8, the sum's scale is undone: 23 bits and more, as the largest exponential
   * is 1; 32 and more leave nothing, and then nothing is near. */
  const int32_t shift = 12 - headroom + 31 - 8;
  const int32_t near = shift < 32 ? count : 0;
#ifndef __AVR__
  const uint32_t half = UINT32_C(1) << ((shift - 1) & 31);
#endif
  const int8_t *const end = input + span;
  for (; input != end; input += stride, output += stride) {
    const tinyet_extent below = TINYET_EXTENT(largest) - *input;
    int32_t value = INT8_MIN;
    if (below < TINYET_EXTENT(near)) {
      const uint32_t share = (uint32_t)tinyet_high_mul_positive(reciprocal, exponentials[below]);
#ifdef __AVR__ /* eight bits at once */
      value = tinyet_round_shift((int32_t)share, shift) - 128;
#else
      value = (int32_t)((share + half) >> shift) - 128;
#endif
      value = value > INT8_MAX ? INT8_MAX : value;
    }
    *output = (int8_t)value;
  }
}

void tinyet_softmax_s8(const int8_t *input, int8_t *output, const tinyet_softmax_s8_params *params) {
  const tinyet_softmax_shape s = params->shape;
  for (int32_t n = 0; n < s.outer; n++) {
    for (int32_t i = 0; i < s.inner; i++) {
      column(input + i, output + i, s.depth, s.inner, params->exponentials, params->count);
    }
    input += s.depth * s.inner;
    output += s.depth * s.inner;
  }
}
