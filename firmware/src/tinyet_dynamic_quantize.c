/* SPDX-License-Identifier: Apache-2.0 */
/* With -Os GCC makes conversions conditional, and "vcvtne.f32.s32" means another instruction to assemblers that know Helium. */
#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE_SIZE__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-if-conversion2")
#endif

#include "tinyet_dynamic.h"

#include <stdbool.h>
#include <string.h>

/* Nearest integer, ties to even, within -512 ... 512; NaN (an infinite range) gives 0. */
static int32_t round_half_even(float x) {
  if (!(x > -512.0f && x < 512.0f)) {
    return x <= -512.0f ? -512 : x >= 512.0f ? 512 : 0;
  }
  const int32_t whole = (int32_t)x;
  const float rest = x - (float)whole; /* exact */
  const bool odd = (whole & 1) != 0;
  return whole + (rest > 0.5f || (rest == 0.5f && odd)) - (rest < -0.5f || (rest == -0.5f && odd));
}

/* Nearest integer, ties away from zero, within low ... INT8_MAX; NaN is low. */
static int32_t nearest(float x, int32_t low) {
  if (!(x > (float)low)) {
    return low;
  }
  if (x >= (float)INT8_MAX) {
    return INT8_MAX;
  }
  const int32_t whole = (int32_t)x;
  const float rest = x - (float)whole; /* exact */
  return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

/* (high - low) / 255, nearly as if rounded once: the rests of difference and quotient are exact. */
static float over_255(float high, float low) {
  const float range = high - low, part = range - high;
  const float range_rest = (high - (range - part)) + (-low - part);
  const float scale = range / 255.0f;
  const float scale_rest = (range - 256.0f * scale) + scale;
  return scale + (scale_rest + range_rest) / 255.0f;
}

/* As LiteRT's hybrid kernels do. */
static tinyet_dynamic_quant quantize_litert(const float *input, int8_t *output, int32_t count, float low, float high,
                                            bool symmetric) {
  tinyet_dynamic_quant quant = {1.0f, 0};
  if (!(low < high)) {
    memset(output, 0, (size_t)count);
    return quant;
  }
  float inverse;
  const int32_t least = symmetric ? -INT8_MAX : INT8_MIN;
  if (symmetric) {
    const float range = -low > high ? -low : high;
    quant.scale = range / 127.0f;
    inverse = 127.0f / range;
  } else {
    quant.scale = over_255(high, low);
    inverse = 1.0f / quant.scale;
    quant.zero_point = nearest(-128.0f - low / quant.scale, INT8_MIN);
  }
  for (int32_t i = 0; i < count; i++) {
    const float scaled = input[i] * inverse;
    output[i] = (int8_t)nearest(symmetric ? scaled : (float)quant.zero_point + scaled, least);
  }
  return quant;
}

tinyet_dynamic_quant tinyet_dynamic_quantize(const float *input, int8_t *output, int32_t count,
                                             const tinyet_dynamic_layer *layer) {
  float low = 0.0f, high = 0.0f;
  for (int32_t i = 0; i < count; i++) {
    const float x = input[i];
    if (x < low) { /* never so for NaN */
      low = x;
    } else if (x > high) {
      high = x;
    }
  }
  if (layer->rule == TINYET_DYNAMIC_SYMMETRIC || layer->rule == TINYET_DYNAMIC_ASYMMETRIC) {
    return quantize_litert(input, output, count, low, high, layer->rule == TINYET_DYNAMIC_SYMMETRIC);
  }
  tinyet_dynamic_quant quant;
  const float scale = (high - low) / 255.0f;
  quant.scale = scale < layer->smallest_scale ? layer->smallest_scale : scale;
  quant.zero_point = tinyet_clamp(INT8_MIN - round_half_even(low / quant.scale), INT8_MIN, INT8_MAX);
  if (layer->rule == TINYET_DYNAMIC_ONNX) {
    for (int32_t i = 0; i < count; i++) {
      const int32_t q = round_half_even(input[i] / quant.scale) + quant.zero_point;
      output[i] = (int8_t)tinyet_clamp(q, INT8_MIN, INT8_MAX);
    }
    return quant;
  }
  for (int32_t i = 0; i < count; i++) {
    output[i] = (int8_t)tinyet_quantize_value(input[i], quant.scale, quant.zero_point, INT8_MIN, INT8_MAX);
  }
  return quant;
}
