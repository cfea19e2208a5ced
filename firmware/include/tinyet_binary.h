/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of two broadcasting operands, element by element. The output may be an operand of its own size. */
#ifndef TINYET_BINARY_H
#define TINYET_BINARY_H

#include "tinyet_broadcast.h"

#ifdef __cplusplus
extern "C" {
#endif

/* clamp((offset + a * a_factor + b * b_factor) >> shift) of the raw int8 values: an addition or subtraction whose factors
 * were proved ahead of time to give what tinyet_add_s8 or tinyet_sub_s8 gives, for every pair of values. */
typedef struct {
  tinyet_broadcast shape;
  int32_t a_factor, b_factor, offset, shift;
  int32_t clamp_low, clamp_high;
} tinyet_affine_s8_params;

void tinyet_affine_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_affine_s8_params *params);

/* The specification itself: operands less their zero point, times 2^20, rescaled, added, rescaled. */
typedef struct {
  tinyet_broadcast shape;
  int32_t a_zero_point, a_multiplier, a_shift;
  int32_t b_zero_point, b_multiplier, b_shift;
  int32_t out_zero_point, out_multiplier, out_shift;
  int32_t clamp_low, clamp_high;
} tinyet_add_s8_params;

void tinyet_add_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_add_s8_params *params);
void tinyet_sub_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_add_s8_params *params);

/* The same for int16, which has no zero points: operands times 2^15. */
typedef struct {
  tinyet_broadcast shape;
  int32_t a_multiplier, a_shift;
  int32_t b_multiplier, b_shift;
  int32_t out_multiplier, out_shift;
  int32_t clamp_low, clamp_high;
} tinyet_add_s16_params;

void tinyet_add_s16(const int16_t *a, const int16_t *b, int16_t *output, const tinyet_add_s16_params *params);
void tinyet_sub_s16(const int16_t *a, const int16_t *b, int16_t *output, const tinyet_add_s16_params *params);

/* The square of the difference of the rescaled operands, rescaled; operands of int8 times 2^7. */
void tinyet_squared_difference_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_add_s8_params *params);
void tinyet_squared_difference_s16(const int16_t *a, const int16_t *b, int16_t *output,
                                   const tinyet_add_s16_params *params);

/* Product less zero points, rescaled in two roundings: tinyet_requantize with what depends on the shift taken out of the
 * loop. Factors below 1/2 need a right shift, larger ones a left shift; each has its own function. */
typedef struct {
  tinyet_broadcast shape;
  int32_t a_zero_point, b_zero_point;
  int32_t multiplier;
  int32_t shift;  /* right: of the result; left: of the product, one more than the factor asks for */
  int32_t offset; /* right: 2^(shift - 1) + 2^shift times the output's zero point; left: the zero point */
  int32_t clamp_low, clamp_high;
} tinyet_mul_s8_params;

void tinyet_mul_right_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_params *params);
void tinyet_mul_left_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_params *params);

/* Product less zero points times the factor plus the output's zero point, in float32, rounded to even (tinyet_rne.h). */
typedef struct {
  tinyet_broadcast shape;
  int32_t a_zero_point, b_zero_point;
  float factor, out_zero_point;
  int32_t above; /* the output's zero point less that of int8 */
  int32_t clamp_low, clamp_high;
} tinyet_mul_s8_rne_params;

void tinyet_mul_s8_rne(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_rne_params *params);

typedef struct {
  tinyet_broadcast shape;
  int32_t multiplier;
  int32_t shift; /* to the right */
  int32_t clamp_low, clamp_high;
} tinyet_mul_s16_params;

void tinyet_mul_s16(const int16_t *a, const int16_t *b, int16_t *output, const tinyet_mul_s16_params *params);

/* By zero: clamp_high, clamp_low, or the zero point for 0 / 0. */
typedef struct {
  tinyet_broadcast shape;
  const TINYET_ROM int32_t *reciprocals; /* [256], Q0.31, of the raw divisors 0 ... 127, -128 ... -1 */
  int32_t a_zero_point, b_zero_point, out_zero_point;
  int32_t multiplier, shift; /* as tinyet_requantize takes them */
  int32_t clamp_low, clamp_high;
} tinyet_div_s8_params;

void tinyet_div_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_div_s8_params *params);

/* x, or slope * x below zero. */
typedef struct {
  tinyet_broadcast shape;
  int32_t x_zero_point, slope_zero_point, out_zero_point;
  int32_t positive_multiplier, positive_shift, negative_multiplier, negative_shift;
} tinyet_prelu_s8_params;

void tinyet_prelu_s8(const int8_t *x, const int8_t *slope, int8_t *output, const tinyet_prelu_s8_params *params);

typedef struct {
  tinyet_broadcast shape;
  int32_t positive_multiplier, positive_shift, negative_multiplier, negative_shift;
} tinyet_prelu_s16_params;

void tinyet_prelu_s16(const int16_t *x, const int16_t *slope, int16_t *output, const tinyet_prelu_s16_params *params);

typedef struct {
  tinyet_broadcast shape;
} tinyet_binary_params;

void tinyet_prelu_f32(const float *x, const float *slope, float *output, const tinyet_binary_params *params);

/* All three of one scale and zero point. In float, NaN where an operand is NaN. */
void tinyet_minimum_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_binary_params *params);
void tinyet_maximum_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_binary_params *params);
void tinyet_minimum_s16(const int16_t *a, const int16_t *b, int16_t *output, const tinyet_binary_params *params);
void tinyet_maximum_s16(const int16_t *a, const int16_t *b, int16_t *output, const tinyet_binary_params *params);
void tinyet_minimum_f32(const float *a, const float *b, float *output, const tinyet_binary_params *params);
void tinyet_maximum_f32(const float *a, const float *b, float *output, const tinyet_binary_params *params);

typedef struct {
  tinyet_broadcast shape;
  float clamp_low, clamp_high; /* may be infinite */
} tinyet_binary_f32_params;

void tinyet_add_f32(const float *a, const float *b, float *output, const tinyet_binary_f32_params *params);
void tinyet_sub_f32(const float *a, const float *b, float *output, const tinyet_binary_f32_params *params);
void tinyet_mul_f32(const float *a, const float *b, float *output, const tinyet_binary_f32_params *params);
void tinyet_div_f32(const float *a, const float *b, float *output, const tinyet_binary_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
