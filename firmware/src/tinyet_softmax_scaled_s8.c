/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_fixed_point.h"
#include "tinyet_softmax.h"

/* One column: elements `stride` apart. */
static void column(const int8_t *input, int8_t *output, const tinyet_softmax_scaled_s8_params *p) {
  const int32_t stride = p->shape.inner, span = p->shape.depth * stride;
  const TINYET_ROM int32_t *const exponentials = p->exponentials;
  const int32_t count = p->count, multiplier = p->multiplier, zero_point = p->out_zero_point;
  const int32_t largest = tinyet_largest_s8(input, span, stride);
  const int32_t sum = tinyet_sum_of_exponentials(input, span, stride, largest, exponentials, count);
  const int32_t headroom = tinyet_leading_zeros((uint32_t)sum);
  const int32_t reciprocal = tinyet_reciprocal_of_sum(sum, headroom);
  /* From Q0.31, and the sum's scale, to output steps; 32 bits and more leave nothing. */
  const int32_t shift = p->shift - headroom;
  for (int32_t i = 0; i < span; i += stride) {
    const tinyet_extent below = TINYET_EXTENT(largest) - input[i];
    int32_t value = 0;
    if (below < TINYET_EXTENT(count) && shift < 32) {
      value = tinyet_requantize(tinyet_high_mul_positive(reciprocal, exponentials[below]), multiplier, -shift);
    }
    output[i] = (int8_t)tinyet_clamp(value + zero_point, INT8_MIN, INT8_MAX);
  }
}

typedef int8_t element;
#define KERNEL tinyet_softmax_scaled_s8
#define PARAMS tinyet_softmax_scaled_s8_params
#define shape_of(params) ((params)->shape)
#include "tinyet_softmax_integer_body.h"
