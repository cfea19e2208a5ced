/* SPDX-License-Identifier: Apache-2.0 */
/* int8 arithmetic element by element for cores with Helium, sixteen values at a time, products eight; the larger and the lesser
 * of int16, too. See tinyet_mve.h. */
#ifndef TINYET_ELEMENTWISE_MVE_H
#define TINYET_ELEMENTWISE_MVE_H

#include "tinyet_clip.h"
#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of values. What an operand of two has beside each row of the other: as many values; the same ones, for columns; or one.
 * step: values from row to row: row, 0 or 1. */
typedef struct {
  int32_t rows, row, step, per_row;
} tinyet_rows_mve;

/* clamp((offset + a * a_factor + b * b_factor) / 2^(16 + shift)), rounded down; shift: 5 or 6. Proved ahead of time to be what
 * tinyet_add_s8 or tinyet_sub_s8 gives for every pair of values; nothing leaves int32. The offset lacks what the two rounding
 * shifts by which it is done add, 2^15 and 2^(15 + shift). */
typedef struct {
  int32_t count, a_factor, b_factor, offset;
  int32_t shift, low, high;
} tinyet_affine_s8_mve_params;

/* The output may be an operand of its size. */
void tinyet_affine_s8_same_mve(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_affine_s8_mve_params *params);

/* The same of values for columns, or of one for each row. */
typedef struct {
  tinyet_rows_mve walk;
  int32_t a_factor, b_factor, offset;
  int32_t shift, low, high;
} tinyet_affine_s8_rows_mve_params;

void tinyet_affine_s8_rows_mve(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_affine_s8_rows_mve_params *params);

/* tinyet_mul_right_s8, of a and b as they come. shift: -1 ... -31. */
typedef struct {
  tinyet_rows_mve walk;
  int32_t a_zero_point, b_zero_point, zero_point;
  int32_t multiplier, shift;
  int32_t low, high;
} tinyet_mul_s8_mve_params;

void tinyet_mul_s8_mve(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_mve_params *params);

/* tinyet_mul_s8_rne (tinyet_rne_mve.h). multiplier, shift: the bits of two floats, the factor and what is added to a product before
 * it is rounded; zero_point: what is added to that, 0 or -128. */
void tinyet_mul_s8_rne_mve(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_mve_params *params);

void tinyet_maximum_s8_mve(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_rows_mve *walk);
void tinyet_minimum_s8_mve(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_rows_mve *walk);
void tinyet_maximum_s16_mve(const int16_t *a, const int16_t *b, int16_t *output, const tinyet_rows_mve *walk);
void tinyet_minimum_s16_mve(const int16_t *a, const int16_t *b, int16_t *output, const tinyet_rows_mve *walk);

void tinyet_clip_s8_mve(const int8_t *input, int8_t *output, const tinyet_clip_params *params);

#ifdef __cplusplus
}
#endif

#endif
