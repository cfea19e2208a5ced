/* SPDX-License-Identifier: Apache-2.0 */
/* int8 arithmetic element by element for cores with DSP instructions, four values at a time: see tinyet_dsp.h.
 *
 * Of two operands, `_same` has two of one shape. `_per_row` has one value of b for each row of `row` values of a,
 * `_per_column` one value of b for each column, the same in all rows. `_unary` has one operand. The output may be an
 * operand of its own size. */
#ifndef TINYET_ELEMENTWISE_DSP_H
#define TINYET_ELEMENTWISE_DSP_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is walked, and the bounds of the result. */
typedef struct {
  int32_t rows, row; /* `_same` has one row */
  int32_t clamp_low, clamp_high;
} tinyet_elementwise_shape_dsp;

/* clamp((offset + (a * a_factor >> 8) + (b * b_factor >> 8)) >> 16) of the raw values. Proved ahead of time to be what
 * tinyet_add_s8 or tinyet_sub_s8 gives for every pair of values; nothing leaves int32. The offset is 128 * 2^16 more. */
typedef struct {
  tinyet_elementwise_shape_dsp walk;
  int32_t a_factor, b_factor, offset;
} tinyet_affine_s8_dsp_params;

void tinyet_affine_s8_same_dsp(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_affine_s8_dsp_params *params);
void tinyet_affine_s8_per_row_dsp(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_affine_s8_dsp_params *params);
void tinyet_affine_s8_per_column_dsp(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_affine_s8_dsp_params *params);

/* The same of one operand: b_factor is not used. */
void tinyet_affine_s8_unary_dsp(const int8_t *input, int8_t *output, const tinyet_affine_s8_dsp_params *params);

/* The same of one operand with a factor and an offset for each channel: a column (channels last), or a row of `channels`
 * that follow each other again and again (channels first). */
typedef struct {
  tinyet_elementwise_shape_dsp walk;
  int32_t channels;
  const int32_t *constants; /* [channels][2]: factor, offset */
} tinyet_affine_s8_channels_dsp_params;

void tinyet_affine_s8_channels_last_dsp(const int8_t *input, int8_t *output, const tinyet_affine_s8_channels_dsp_params *params);
void tinyet_affine_s8_channels_first_dsp(const int8_t *input, int8_t *output, const tinyet_affine_s8_channels_dsp_params *params);

/* tinyet_mul_right_s8. offset: 2^(shift - 1) + 2^shift times (the output's zero point + 128). Results before the clamp fit
 * int16, the 128 included. */
typedef struct {
  tinyet_elementwise_shape_dsp walk;
  int32_t a_zero_point, b_zero_point;
  int32_t multiplier, shift, offset;
} tinyet_mul_s8_dsp_params;

void tinyet_mul_s8_same_dsp(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_dsp_params *params);
void tinyet_mul_s8_per_row_dsp(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_dsp_params *params);
void tinyet_mul_s8_per_column_dsp(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_dsp_params *params);

void tinyet_maximum_s8_same_dsp(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_elementwise_shape_dsp *walk);
void tinyet_minimum_s8_same_dsp(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_elementwise_shape_dsp *walk);

/* Within the walk's bounds. */
void tinyet_clip_s8_dsp(const int8_t *input, int8_t *output, const tinyet_elementwise_shape_dsp *walk);

#ifdef __cplusplus
}
#endif

#endif
