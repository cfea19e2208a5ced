/* SPDX-License-Identifier: Apache-2.0 */
/* Average pooling over windows given by tables, NHWC. */
#ifndef TINYET_ADAPTIVE_AVG_POOL2D_H
#define TINYET_ADAPTIVE_AVG_POOL2D_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t batch;
  int32_t in_h, in_w, channels;
  int32_t out_h, out_w;
  const TINYET_ROM int32_t *rows;    /* [out_h][2]: first row and number of rows */
  const TINYET_ROM int32_t *columns; /* [out_w][2]: first column and number of columns */
} tinyet_adaptive_avg_pool2d_shape;

typedef struct {
  tinyet_adaptive_avg_pool2d_shape shape;
  /* rows of tinyet_division for windows of first_count, first_count + 1, ... pixels */
  const TINYET_ROM int32_t *divisions;
  int32_t first_count;
} tinyet_adaptive_avg_pool2d_s8_params;

void tinyet_adaptive_avg_pool2d_s8(const int8_t *input, int8_t *output,
                                   const tinyet_adaptive_avg_pool2d_s8_params *params);
void tinyet_adaptive_avg_pool2d_s16(const int16_t *input, int16_t *output,
                                    const tinyet_adaptive_avg_pool2d_s8_params *params);

/* Sums in the order of the pixels, rows first, then divides. */
void tinyet_adaptive_avg_pool2d_f32(const float *input, float *output, const tinyet_adaptive_avg_pool2d_shape *params);

#ifdef __cplusplus
}
#endif

#endif
