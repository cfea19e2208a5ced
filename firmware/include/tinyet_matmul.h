/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices: [rows][depth] by [depth][columns]. */
#ifndef TINYET_MATMUL_H
#define TINYET_MATMUL_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t count; /* products */
  int32_t rows, depth, columns;
  const TINYET_ROM int32_t *batches; /* [count][2]: where the two matrices begin in a and in b, in elements */
  int32_t a_zero_point, b_zero_point, out_zero_point;
  int32_t multiplier, shift;
  int32_t clamp_low, clamp_high;
} tinyet_matmul_s8_params;

/* int16 has no zero points; sums have 64 bits. */
typedef struct {
  int32_t count;
  int32_t rows, depth, columns;
  const TINYET_ROM int32_t *batches;
  int32_t multiplier, shift; /* as tinyet_requantize_s64 takes them */
  int32_t clamp_low, clamp_high;
} tinyet_matmul_s16_params;

typedef struct {
  int32_t count;
  int32_t rows, depth, columns;
  const TINYET_ROM int32_t *batches;
  float clamp_low, clamp_high;
} tinyet_matmul_f32_params;

void tinyet_matmul_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_matmul_s8_params *params);

/* Rounded to nearest even; the multiplier is the bits of a float (tinyet_rne.h). */
void tinyet_matmul_s8_rne(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_matmul_s8_params *params);

void tinyet_matmul_s16(const int16_t *a, const int16_t *b, int16_t *output, const tinyet_matmul_s16_params *params);

/* Sums from zero, in the order of depth. */
void tinyet_matmul_f32(const float *a, const float *b, float *output, const tinyet_matmul_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
