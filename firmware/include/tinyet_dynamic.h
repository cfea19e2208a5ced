/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that quantize their float input while they run: int8 products, float out. tinyet/ops/shared/dynamic.py is the definition,
 * step by step. */
#ifndef TINYET_DYNAMIC_H
#define TINYET_DYNAMIC_H

#include "tinyet_conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

/* real = scale * (q - zero_point) */
typedef struct {
  float scale;
  int32_t zero_point;
} tinyet_dynamic_quant;

/* How an input becomes integers: as torch does, as LiteRT, without or with a zero point, or as ONNX's
 * DynamicQuantizeLinear. */
enum { TINYET_DYNAMIC_TORCH, TINYET_DYNAMIC_SYMMETRIC, TINYET_DYNAMIC_ASYMMETRIC, TINYET_DYNAMIC_ONNX };

typedef struct {
  const TINYET_ROM int8_t *weights;      /* as the int8 kernels have them */
  const TINYET_ROM int32_t *weight_sums; /* [out_c] */
  const TINYET_ROM float *weight_scales; /* [out_c] */
  const TINYET_ROM float *bias;          /* [out_c] */
  float smallest_scale;
  int32_t rule; /* one of the enum above */
  float clamp_low, clamp_high;
} tinyet_dynamic_layer;

typedef struct {
  int32_t rows, depth, out_count;
  tinyet_dynamic_layer layer; /* weights as tinyet_linear_s8; weight_sums rounded up to fours */
} tinyet_dynamic_linear_params;

typedef struct {
  tinyet_conv2d_shape shape;
  tinyet_dynamic_layer layer; /* weights as the int8 kernel has them */
} tinyet_dynamic_conv2d_params;

/* Quantizes all values by their own range, which always holds 0. */
tinyet_dynamic_quant tinyet_dynamic_quantize(const float *input, int8_t *output, int32_t count,
                                             const tinyet_dynamic_layer *layer);

/* One output: a sum of products of (q - zero point), as a real number. */
static inline float tinyet_dynamic_output(int32_t sum, float factor, float bias, const tinyet_dynamic_layer *layer) {
  const float product = (float)sum * factor;
  return tinyet_clamp_f32(product + bias, layer->clamp_low, layer->clamp_high);
}

/* scratch: 4 * out_count + rows * depth bytes. */
void tinyet_dynamic_linear_f32(const float *input, float *output, void *scratch,
                               const tinyet_dynamic_linear_params *params);

/* Any convolution. weights as tinyet_conv2d_s8. scratch: 4 * out_c bytes, 8 for each pair of depth, and one for each
 * input. */
void tinyet_dynamic_conv2d_f32(const float *input, float *output, void *scratch,
                               const tinyet_dynamic_conv2d_params *params);

/* groups == in_c == out_c. weights as tinyet_depthwise_s8; weight_sums rounded up to fours. scratch: 4 * out_c bytes, 8 for
 * each tap, and one for each input. */
void tinyet_dynamic_depthwise_f32(const float *input, float *output, void *scratch,
                                  const tinyet_dynamic_conv2d_params *params);

#ifdef __cplusplus
}
#endif

#endif
