/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_fixed_point.h"
#include "tinyet_rne.h"
#include "tinyet_softmax.h"

/* One column: elements `stride` apart. */
static void column(const int8_t *input, int8_t *output, const tinyet_softmax_s8_rne_params *p) {
  const int32_t stride = p->shape.inner, span = p->shape.depth * stride;
  const TINYET_ROM float *const exponentials = p->exponentials;
  const int32_t largest = tinyet_largest_s8(input, span, stride);
  float sum = 0.0f;
  for (int32_t i = 0; i < span; i += stride) {
    sum += exponentials[largest - input[i]];
  }
  for (int32_t i = 0; i < span; i += stride) {
    const float share = exponentials[largest - input[i]] * p->steps / sum;
    output[i] = (int8_t)tinyet_clamp(tinyet_round_half_even(share) + p->out_zero_point, INT8_MIN, INT8_MAX);
  }
}

typedef int8_t element;
#define KERNEL tinyet_softmax_s8_rne
#define PARAMS tinyet_softmax_s8_rne_params
#define shape_of(params) ((params)->shape)
#include "tinyet_softmax_integer_body.h"
