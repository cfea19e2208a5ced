/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over axes: sum (and mean), greatest, least. The input is five dimensions, outermost first:
 * [outer][reduced_outer][middle][reduced_inner][inner]; the output is [outer][middle][inner]. */
#ifndef TINYET_REDUCE_H
#define TINYET_REDUCE_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t outer, reduced_outer, middle, reduced_inner, inner;
} tinyet_reduce_shape;

typedef struct {
  tinyet_reduce_shape shape;
  int32_t bias;       /* minus the input's zero point times the number of elements summed */
  int32_t multiplier; /* for a mean, 1 / count is in here */
  int32_t shift;
  int32_t out_zero_point;
} tinyet_sum_s8_params;

typedef struct {
  tinyet_reduce_shape shape;
  int32_t multiplier; /* for a mean, 1 / count is in here */
  int32_t shift;
} tinyet_sum_s16_params;

typedef struct {
  tinyet_reduce_shape shape;
  float divisor; /* 1, or the count for a mean */
} tinyet_sum_f32_params;

typedef struct {
  tinyet_reduce_shape shape;
} tinyet_reduce_params;

typedef struct {
  int32_t rows, depth;
} tinyet_sum_of_squares_params;

void tinyet_sum_s8(const int8_t *input, int8_t *output, const tinyet_sum_s8_params *params);

/* With the rounding of tinyet_rne.h: the multiplier is the bits of a float, the shift is not read. */
void tinyet_sum_s8_rne(const int8_t *input, int8_t *output, const tinyet_sum_s8_params *params);

void tinyet_sum_s16(const int16_t *input, int16_t *output, const tinyet_sum_s16_params *params);

/* Sums start at 0 and take the reduced elements in row-major order. */
void tinyet_sum_f32(const float *input, float *output, const tinyet_sum_f32_params *params);

/* input [rows][depth]. Sums start at 0 and take the squares in their order. */
void tinyet_sum_of_squares_f32(const float *input, float *output, const tinyet_sum_of_squares_params *params);

void tinyet_amax_s8(const int8_t *input, int8_t *output, const tinyet_reduce_params *params);
void tinyet_amin_s8(const int8_t *input, int8_t *output, const tinyet_reduce_params *params);
void tinyet_amax_s16(const int16_t *input, int16_t *output, const tinyet_reduce_params *params);
void tinyet_amin_s16(const int16_t *input, int16_t *output, const tinyet_reduce_params *params);

/* A NaN among the elements makes the result NaN. Of equal elements (0 and -0) the first is the result. */
void tinyet_amax_f32(const float *input, float *output, const tinyet_reduce_params *params);
void tinyet_amin_f32(const float *input, float *output, const tinyet_reduce_params *params);

#ifdef __cplusplus
}
#endif

#endif
