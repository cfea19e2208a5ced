/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_math.h"
#include "tinyet_softmax.h"

static void column(const float *input, float *output, int32_t depth, int32_t stride) {
  const int32_t span = depth * stride;
  float largest = input[0], sum = 0.0f;
  for (int32_t i = 0; i < span; i += stride) {
    largest = input[i] > largest ? input[i] : largest;
  }
  for (int32_t i = 0; i < span; i += stride) {
    output[i] = tinyet_expf(input[i] - largest);
    sum += output[i];
  }
  const float reciprocal = 1.0f / sum;
  for (int32_t i = 0; i < span; i += stride) {
    output[i] *= reciprocal;
  }
}

#define KERNEL tinyet_softmax_f32
#include "tinyet_softmax_body.h"
