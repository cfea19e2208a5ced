/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_softmax.h"

/* 1 / (1 + x) for x in [0, 1), both Q0.31: three Newton steps in Q2.29. */
static int32_t one_over_one_plus(int32_t x) {
  const int32_t half_denominator = (int32_t)((UINT32_C(0x80000000) + (uint32_t)x) >> 1);
  int32_t y = 1515870810 + tinyet_high_mul(half_denominator, -1010580540); /* 48/17 - 32/17 d */
  for (int32_t i = 0; i < 3; i++) {
    /* Errors are small from the start, so that the shift by two does not saturate. */
    y += tinyet_high_mul(y, (INT32_C(1) << 29) - tinyet_high_mul(half_denominator, y)) * 4;
  }
  return y >= (INT32_C(1) << 30) ? INT32_MAX : y * 2;
}

/* One column: `depth` elements `stride` apart. */
static void column(const int8_t *input, int8_t *output, int32_t depth, int32_t stride, const int32_t *exponentials,
                   int32_t count) {
  const int32_t span = depth * stride;
  int32_t largest = INT8_MIN;
  for (int32_t i = 0; i < span; i += stride) {
    largest = input[i] > largest ? input[i] : largest;
  }
  int32_t sum = 0; /* Q12.19 */
  for (int32_t i = 0; i < span; i += stride) {
    const int32_t below = largest - input[i];
    if (below < count) {
      sum += (exponentials[below] + (1 << 11)) >> 12;
    }
  }
  int32_t headroom = 0;
  uint32_t unit = (uint32_t)sum; /* the sum is at least 1, so a bit is set */
  while (unit < UINT32_C(0x80000000)) {
    unit <<= 1;
    headroom++;
  }
  const int32_t reciprocal = one_over_one_plus((int32_t)(unit - UINT32_C(0x80000000)));
  /* 31 fraction bits of the exponential become 8, the sum's scale is undone; 32 bits and more leave nothing. */
  const int32_t shift = 12 - headroom + 31 - 8;
  for (int32_t i = 0; i < span; i += stride) {
    const int32_t below = largest - input[i];
    int32_t value = 0;
    if (below < count && shift < 32) {
      value = tinyet_round_shift(tinyet_high_mul(reciprocal, exponentials[below]), shift);
    }
    output[i] = (int8_t)(value > 255 ? INT8_MAX : value - 128);
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
