/* SPDX-License-Identifier: Apache-2.0 */
/* Fully connected layer: rows of `depth` values times a matrix of weights. */
#ifndef TINYET_LINEAR_H
#define TINYET_LINEAR_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t rows, depth, out_count;
  /* [out_count / 4][depth / 4][4][4], rounded up with zeros: four inputs of each of four outputs */
  const TINYET_ROM int8_t *weights;
  /* minus the input's zero point times the sum of the output's weights; rounded up to fours */
  const TINYET_ROM int32_t *bias;
  const TINYET_ROM int32_t *multiplier; /* [out_count] */
  const TINYET_ROM int8_t *shift;       /* [out_count], forms as tinyet_requantize_form has them */
  int32_t out_zero_point;
  int32_t clamp_low, clamp_high;
} tinyet_linear_s8_params;

/* int16 activations have no zero points; sums have 64 bits. */
typedef struct {
  int32_t rows, depth, out_count;
  /* [out_count / 4][depth / 2][8], rounded up with zeros: bytes a0 b0 a1 b1 c0 d0 c1 d1 */
  const TINYET_ROM int8_t *weights;
  const TINYET_ROM int64_t *bias;       /* [out_count], rounded up to fours */
  const TINYET_ROM int16_t *multiplier; /* [out_count], as tinyet_requantize_s64 takes it, and so is the shift */
  const TINYET_ROM int8_t *shift;       /* [out_count] */
  int32_t block;                        /* as many pairs of products as fit in a sum of 32 bits, whatever the input */
  int32_t clamp_low, clamp_high;
} tinyet_linear_s16_params;

typedef struct {
  int32_t rows, depth, out_count;
  const TINYET_ROM float *weights; /* [out_count][depth] */
  const TINYET_ROM float *bias;    /* [out_count] */
  float clamp_low, clamp_high;
} tinyet_linear_f32_params;

void tinyet_linear_s8(const int8_t *input, int8_t *output, const tinyet_linear_s8_params *params);

/* With the rounding of tinyet_rne.h: the multiplier is the bits of a float, the shift is not read. */
void tinyet_linear_s8_rne(const int8_t *input, int8_t *output, const tinyet_linear_s8_params *params);

/* int4 weights: the words of blocks 2 i and 2 i + 1 of depth in one (tinyet_int4.h). */
void tinyet_linear_s8_w4(const int8_t *input, int8_t *output, const tinyet_linear_s8_params *params);

void tinyet_linear_s16(const int16_t *input, int16_t *output, const tinyet_linear_s16_params *params);

/* Sums in the order bias, then k = 0 ... depth - 1. */
void tinyet_linear_f32(const float *input, float *output, const tinyet_linear_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
