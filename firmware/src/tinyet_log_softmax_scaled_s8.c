/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_fixed_point.h"
#include "tinyet_softmax.h"

/* One column: elements `stride` apart. */
static void column(const int8_t *input, int8_t *output, const tinyet_log_softmax_scaled_s8_params *p) {
  const int32_t stride = p->shape.inner, span = p->shape.depth * stride;
  const int32_t multiplier = p->multiplier, shift = p->shift, out_multiplier = p->out_multiplier;
  const int32_t out_shift = p->out_shift, zero_point = p->out_zero_point;
  const int32_t largest = tinyet_largest_s8(input, span, stride);
  const int32_t sum = tinyet_sum_of_exponentials(input, span, stride, largest, p->exponentials, p->count);
  const int32_t log_sum = tinyet_round_shift(tinyet_log_of_sum(sum), p->log_shift);
  for (int32_t i = 0; i < span; i += stride) {
    const int32_t value = tinyet_requantize(input[i] - largest, multiplier, shift) - log_sum;
    output[i] = (int8_t)tinyet_clamp(tinyet_requantize(value, out_multiplier, out_shift) + zero_point, INT8_MIN, INT8_MAX);
  }
}

typedef int8_t element;
#define KERNEL tinyet_log_softmax_scaled_s8
#define PARAMS tinyet_log_softmax_scaled_s8_params
#define shape_of(params) ((params)->shape)
#include "tinyet_softmax_integer_body.h"
