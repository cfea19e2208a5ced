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
