/* SPDX-License-Identifier: Apache-2.0 */
/* Two-dimensional average pooling, NHWC. Every window has a tap inside the image. */
#ifndef TINYET_AVG_POOL2D_H
#define TINYET_AVG_POOL2D_H

#include "tinyet_pool2d.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef tinyet_pool2d_shape tinyet_avg_pool2d_shape;

typedef struct {
  tinyet_avg_pool2d_shape shape;
  /* rows of tinyet_division for windows with first_count, first_count + 1, ... taps inside */
  const TINYET_ROM int32_t *divisions;
  int32_t first_count;
} tinyet_avg_pool2d_s8_params;

typedef struct {
  tinyet_avg_pool2d_shape shape;
  int32_t divisor; /* 0: the number of taps inside the image */
} tinyet_avg_pool2d_f32_params;

void tinyet_avg_pool2d_s8(const int8_t *input, int8_t *output, const tinyet_avg_pool2d_s8_params *params);
void tinyet_avg_pool2d_s16(const int16_t *input, int16_t *output, const tinyet_avg_pool2d_s8_params *params);

/* Sums in the order of the taps, rows first, then divides. */
void tinyet_avg_pool2d_f32(const float *input, float *output, const tinyet_avg_pool2d_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
