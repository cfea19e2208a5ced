/* SPDX-License-Identifier: Apache-2.0 */
/* Two-dimensional convolution, NHWC. Weights are [out_c][kernel_h][kernel_w][in_c / groups]. */
#ifndef TINYET_CONV2D_H
#define TINYET_CONV2D_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t batch;
  int32_t in_h, in_w, in_c;
  int32_t out_h, out_w, out_c;
  int32_t kernel_h, kernel_w;
  int32_t stride_h, stride_w;
  int32_t dilation_h, dilation_w;
  int32_t pad_top, pad_left;
  int32_t groups;
} tinyet_conv2d_shape;

typedef struct {
  const TINYET_ROM int8_t *weights;
  const TINYET_ROM int32_t *bias;       /* [out_c], minus in_zero_point times the sum of the channel's weights */
  const TINYET_ROM int32_t *multiplier; /* [out_c] */
  const TINYET_ROM int8_t *shift;       /* [out_c] */
  int32_t in_zero_point;                /* what padding reads as */
  int32_t out_zero_point;
  int32_t clamp_low, clamp_high;
} tinyet_conv2d_s8_quant;

/* int16 activations have no zero points; sums have 64 bits. */
typedef struct {
  const TINYET_ROM int8_t *weights;
  const TINYET_ROM int64_t *bias;       /* [out_c] */
  const TINYET_ROM int16_t *multiplier; /* [out_c], as tinyet_requantize_s64 takes it, and so is the shift */
  const TINYET_ROM int8_t *shift;       /* [out_c] */
  int32_t block;                        /* as many pairs of products as fit in a sum of 32 bits, whatever the input */
  int32_t clamp_low, clamp_high;
} tinyet_conv2d_s16_quant;

/* Sums that have 32 bits, whatever the input. */
typedef struct {
  const TINYET_ROM int8_t *weights;
  const TINYET_ROM int32_t *bias;       /* [out_c] */
  const TINYET_ROM int32_t *multiplier; /* [out_c] */
  const TINYET_ROM int8_t *shift;       /* [out_c] */
  int32_t block;                        /* all pairs of products */
  int32_t clamp_low, clamp_high;
} tinyet_conv2d_s16_acc32_quant;

typedef struct {
  const TINYET_ROM float *weights;
  const TINYET_ROM float *bias; /* [out_c] */
  float clamp_low, clamp_high;
} tinyet_conv2d_f32_values;

typedef struct {
  tinyet_conv2d_shape shape;
  tinyet_conv2d_s8_quant quant;
} tinyet_conv2d_s8_params;

typedef struct {
  tinyet_conv2d_shape shape;
  tinyet_conv2d_s16_quant quant;
} tinyet_conv2d_s16_params;

typedef struct {
  tinyet_conv2d_shape shape;
  tinyet_conv2d_s16_acc32_quant quant;
} tinyet_conv2d_s16_acc32_params;

typedef struct {
  tinyet_conv2d_shape shape;
  tinyet_conv2d_f32_values values;
} tinyet_conv2d_f32_params;

/* Any convolution. Weights are [groups][pairs of channels][pairs of depth][4], bytes a0 b0 a1 b1, zeros where a channel or
 * an element is missing; the shift is a form (tinyet_requantize_form). scratch: 8 bytes for each pair of depth. */
void tinyet_conv2d_s8(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params);

/* 1x1, stride 1, no padding, one group: no patches to gather. Weights, shift and scratch as above. */
void tinyet_conv2d_1x1_s8(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params);

/* groups == in_c == out_c. Weights are [fours of channels][kernel_h][kernel_w][4], zeros where a channel is missing; the
 * shift is a form. scratch: 8 bytes for each tap. */
void tinyet_depthwise_s8(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params);

/* The same with int4 weights, two words of the layouts above in one (tinyet_int4.h): of two neighbours in depth, or two
 * taps. scratch of the first two: 16 bytes for each four of depth. */
void tinyet_conv2d_s8_w4(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params);
void tinyet_conv2d_1x1_s8_w4(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params);
void tinyet_depthwise_s8_w4(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params);

/* groups == in_c (channel multiplier out_c / in_c). Weights are [kernel_h][kernel_w][out_c], bias is not folded
 * (taps outside the image are left out). scratch: 4 * out_c bytes. */
void tinyet_depthwise_multiplier_s8(const int8_t *input, int8_t *output, void *scratch,
                                    const tinyet_conv2d_s8_params *params);

/* Any convolution; weights and scratch as tinyet_conv2d_s8. */
void tinyet_conv2d_s16(const int16_t *input, int16_t *output, void *scratch, const tinyet_conv2d_s16_params *params);
void tinyet_conv2d_s16_acc32(const int16_t *input, int16_t *output, void *scratch,
                             const tinyet_conv2d_s16_acc32_params *params);

/* groups == in_c == out_c; all products of a channel fit in a sum of 32 bits. Weights as tinyet_depthwise_s8. scratch: 16
 * bytes for each tap. */
void tinyet_depthwise_s16(const int16_t *input, int16_t *output, void *scratch, const tinyet_conv2d_s16_params *params);

/* groups == in_c (channel multiplier out_c / in_c); all products of a channel fit in a sum of 32 bits. Weights are
 * [kernel_h][kernel_w][out_c]. scratch: 4 * out_c bytes. */
void tinyet_depthwise_multiplier_s16(const int16_t *input, int16_t *output, void *scratch,
                                     const tinyet_conv2d_s16_params *params);

/* Sums in the order bias, kernel row, kernel column, channel; taps outside the image are left out. */
void tinyet_conv2d_f32(const float *input, float *output, const tinyet_conv2d_f32_params *params);

/* One group, the same sums. Weights are [fours of channels][kernel_h][kernel_w][in_c][4], and behind them what channels are
 * left, [out_c % 4][kernel_h][kernel_w][in_c]. */
void tinyet_conv2d_f32_2x4(const float *input, float *output, const tinyet_conv2d_f32_params *params);

/* groups == in_c == out_c, the same sums. Weights are [fours of channels][kernel_h][kernel_w][4], and behind them what
 * channels are left, [out_c % 4][kernel_h][kernel_w]. */
void tinyet_depthwise_f32(const float *input, float *output, const tinyet_conv2d_f32_params *params);

/* The same four with the rounding of tinyet_rne.h: the multiplier is the bits of a float, the shift is not read. */
void tinyet_conv2d_s8_rne(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params);
void tinyet_conv2d_1x1_s8_rne(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params);
void tinyet_depthwise_s8_rne(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params);
void tinyet_depthwise_multiplier_s8_rne(const int8_t *input, int8_t *output, void *scratch,
                                        const tinyet_conv2d_s8_params *params);

#ifdef __cplusplus
}
#endif

#endif
