/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and means for cores with Helium: over all pixels of an image, eight channels at a time, and of rows, four at a time. */
#ifndef TINYET_SUM_MVE_H
#define TINYET_SUM_MVE_H

#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* bias: in place of the input's zero point. shift: -1 ... -31. */
typedef struct {
  int32_t bias, multiplier, shift, zero_point;
  int32_t images, pixels, channels;
} tinyet_sum_s8_mve_params;

/* Sums of up to 256 pixels fit int16, and are added to those in int32. */
void tinyet_sum_s8_mve(const int8_t *input, int8_t *output, const tinyet_sum_s8_mve_params *params);
/* Rounded to even (tinyet_rne_mve.h): the multiplier is the bits of a float, and the shift is not read. */
void tinyet_sum_s8_rne_mve(const int8_t *input, int8_t *output, const tinyet_sum_s8_mve_params *params);

/* The same of int16, without zero points; sums fit 32 bits. */
typedef struct {
  int32_t multiplier, shift;
  int32_t images, pixels, channels;
} tinyet_sum_s16_mve_params;

void tinyet_sum_s16_mve(const int16_t *input, int16_t *output, const tinyet_sum_s16_mve_params *params);

/* Of rows of `count` values; of int16 without zero points. */
typedef struct {
  int32_t bias, multiplier, shift, zero_point;
  int32_t rows, count;
} tinyet_sum_rows_mve_params;

void tinyet_sum_s8_rows_mve(const int8_t *input, int8_t *output, const tinyet_sum_rows_mve_params *params);
void tinyet_sum_s16_rows_mve(const int16_t *input, int16_t *output, const tinyet_sum_rows_mve_params *params);

#ifdef __cplusplus
}
#endif

#endif
