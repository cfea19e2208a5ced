/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_dynamic.h"

/* Nearest integer, halves to even, of a number in -256 ... 0; NaN (an infinite range) gives 0. */
static int32_t nearest_even(float x) {
  if (!(x >= -256.0f)) {
    return 0;
  }
  const int32_t whole = (int32_t)x;
  const float rest = x - (float)whole; /* exact */
  return rest < -0.5f || (rest == -0.5f && (whole & 1) != 0) ? whole - 1 : whole;
}

tinyet_dynamic_quant tinyet_dynamic_quantize(const float *input, int8_t *output, int32_t count, float smallest_scale) {
  float low = 0.0f, high = 0.0f;
  for (int32_t i = 0; i < count; i++) {
    const float x = input[i];
    if (x < low) { /* never so for NaN */
      low = x;
    } else if (x > high) {
      high = x;
    }
  }
  tinyet_dynamic_quant quant;
  const float scale = (high - low) / 255.0f;
  quant.scale = scale < smallest_scale ? smallest_scale : scale;
  quant.zero_point = tinyet_clamp(INT8_MIN - nearest_even(low / quant.scale), INT8_MIN, INT8_MAX);
  for (int32_t i = 0; i < count; i++) {
    output[i] = (int8_t)tinyet_quantize_value(input[i], quant.scale, quant.zero_point, INT8_MIN, INT8_MAX);
  }
  return quant;
}
