/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_layer_norm.h"

/* The integer part of sqrt(x), a bit at a time. */
static uint32_t integer_root(uint64_t x) {
  uint64_t rest = x, root = 0;
  for (uint64_t bit = UINT64_C(1) << 62; bit != 0; bit >>= 2) {
    if (rest >= root + bit) {
      rest -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  return (uint32_t)root;
}

void tinyet_layer_norm_s8(const int8_t *input, int8_t *output, const tinyet_layer_norm_s8_params *params) {
  const TINYET_ROM int32_t *const weight = params->weight, *const bias = params->bias;
  const int32_t count = params->count, shift = params->shift, half = (INT32_C(1) << shift) >> 1;
  const int32_t in_zero_point = params->in_zero_point, out_zero_point = params->out_zero_point;
  const uint64_t epsilon = (uint64_t)params->epsilon, unit = UINT64_C(1) << (2 * params->half_fraction);
  for (int32_t row = params->rows; row > 0; row--) {
    int32_t sum = 0;
    uint32_t squares = 0;
    for (int32_t i = 0; i < count; i++) {
      const int32_t x = input[i] - in_zero_point;
      sum += x;
      squares += (uint32_t)(x * x);
    }
    /* count^2 times the variance; never negative. */
    const uint64_t spread = (uint64_t)count * squares - (uint64_t)((int64_t)sum * sum);
    const uint64_t widened = (spread << (2 * params->half_fraction)) + epsilon;
    /* Equal elements give 0 whatever the root; one unit keeps its shift within 31 bits. */
    const uint64_t positive = widened < unit ? unit : widened;
    const int32_t pairs = __builtin_clzll(positive) / 2;
    const uint64_t reciprocal = (UINT64_C(1) << 62) / integer_root(positive << (2 * pairs));
    const int32_t multiplier = reciprocal > INT32_MAX ? INT32_MAX : (int32_t)reciprocal;
    const int32_t normal_shift = pairs + params->half_fraction - 31 + 20;
    for (int32_t i = 0; i < count; i++) {
      const int32_t difference = count * (input[i] - in_zero_point) - sum;
      const int32_t normal = tinyet_requantize(difference, multiplier, normal_shift);
      const int32_t scaled = (int32_t)(((int64_t)normal * weight[i] + (INT32_C(1) << 19)) >> 20);
      output[i] = (int8_t)tinyet_clamp(((scaled + bias[i] + half) >> shift) + out_zero_point, INT8_MIN, INT8_MAX);
    }
    input += count;
    output += count;
  }
}
