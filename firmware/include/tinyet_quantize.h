/* SPDX-License-Identifier: Apache-2.0 */
/* Between float and int8 or int16: real = scale * (q - zero_point). */
#ifndef TINYET_QUANTIZE_H
#define TINYET_QUANTIZE_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  float scale;
  int32_t zero_point;
  int32_t count;
} tinyet_quantize_params;

/* Nearest, ties away from zero, saturating; NaN gives the zero point. */
void tinyet_quantize_f32_s8(const float *input, int8_t *output, const tinyet_quantize_params *params);

typedef struct {
  float scale;
  float before;  /* added to the steps before they are rounded: the zero point where ONNX Runtime's kernels add it so */
  int32_t after; /* added to the integer */
  int32_t count;
} tinyet_quantize_rne_params;

/* Nearest, ties to even, saturating; NaN gives the zero point. */
void tinyet_quantize_f32_s8_rne(const float *input, int8_t *output, const tinyet_quantize_rne_params *params);

void tinyet_quantize_f32_s16(const float *input, int16_t *output, const tinyet_quantize_params *params);

void tinyet_dequantize_s16_f32(const int16_t *input, float *output, const tinyet_quantize_params *params);
void tinyet_dequantize_s8_f32(const int8_t *input, float *output, const tinyet_quantize_params *params);

typedef struct {
  int32_t in_zero_point, out_zero_point;
  int32_t multiplier, shift; /* input scale / output scale, as tinyet_requantize takes it */
  int32_t clamp_low, clamp_high;
  int32_t count;
} tinyet_requantize_params;

/* Integers to integers of another scale, zero point or size. Where both have one size, the output may be the input. */
void tinyet_requantize_s8(const int8_t *input, int8_t *output, const tinyet_requantize_params *params);
void tinyet_requantize_s16(const int16_t *input, int16_t *output, const tinyet_requantize_params *params);
void tinyet_requantize_s8_s16(const int8_t *input, int16_t *output, const tinyet_requantize_params *params);
void tinyet_requantize_s16_s8(const int16_t *input, int8_t *output, const tinyet_requantize_params *params);
void tinyet_requantize_s32_s8(const int32_t *input, int8_t *output, const tinyet_requantize_params *params);
void tinyet_requantize_s32_s16(const int32_t *input, int16_t *output, const tinyet_requantize_params *params);
void tinyet_requantize_s8_s32(const int8_t *input, int32_t *output, const tinyet_requantize_params *params);
void tinyet_requantize_s16_s32(const int16_t *input, int32_t *output, const tinyet_requantize_params *params);

#ifdef __cplusplus
}
#endif

#endif
