/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_fixed_point.h"
#include "tinyet_softmax.h"

/* One column: elements `stride` apart. */
static void column(const int8_t *input, int8_t *output, const tinyet_log_softmax_s8_params *p) {
  const int32_t stride = p->shape.inner, span = p->shape.depth * stride;
  const TINYET_ROM int32_t *const exponentials = p->exponentials;
  const int32_t count = p->count, near = p->near, multiplier = p->multiplier, left = p->left;
  const int32_t largest = tinyet_largest_s8(input, span, stride);
  const int32_t sum = tinyet_sum_of_exponentials(input, span, stride, largest, exponentials, count);
  const int32_t log_sum = tinyet_log_of_sum(sum);
  for (int32_t i = 0; i < span; i += stride) {
    const tinyet_extent below = TINYET_EXTENT(largest) - input[i];
    int32_t value = INT8_MIN;
    if (below < TINYET_EXTENT(near)) {
      const int32_t difference = tinyet_high_mul(tinyet_shift_left(-below, left), multiplier);
      value = tinyet_clamp(tinyet_round_shift(difference - log_sum, 22) + 127, INT8_MIN, INT8_MAX);
    }
    output[i] = (int8_t)value;
  }
}

typedef int8_t element;
#define KERNEL tinyet_log_softmax_s8
#define PARAMS tinyet_log_softmax_s8_params
#define shape_of(params) ((params)->shape)
#include "tinyet_softmax_integer_body.h"
