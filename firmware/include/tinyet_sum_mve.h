/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and means over all pixels of an image for cores with Helium, eight channels at a time. */
#ifndef TINYET_SUM_MVE_H
#define TINYET_SUM_MVE_H

#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* bias: in place of the input's zero point. pixels: at most 256, so that sums fit int16. shift: -1 ... -31. */
typedef struct {
  int32_t bias, multiplier, shift, zero_point;
  int32_t images, pixels, channels;
} tinyet_sum_s8_mve_params;

void tinyet_sum_s8_mve(const int8_t *input, int8_t *output, const tinyet_sum_s8_mve_params *params);

/* The same of int16, without zero points; sums fit 32 bits. */
typedef struct {
  int32_t multiplier, shift;
  int32_t images, pixels, channels;
} tinyet_sum_s16_mve_params;

void tinyet_sum_s16_mve(const int16_t *input, int16_t *output, const tinyet_sum_s16_mve_params *params);

#ifdef __cplusplus
}
#endif

#endif
