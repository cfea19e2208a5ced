/* SPDX-License-Identifier: Apache-2.0 */
/* Average pooling over windows given by tables for cores with Helium: of int8 eight channels at a time, of int16 four. */
#ifndef TINYET_ADAPTIVE_AVG_POOL2D_MVE_H
#define TINYET_ADAPTIVE_AVG_POOL2D_MVE_H

#include "tinyet_adaptive_avg_pool2d.h"
#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The average of a sum t: ((t + offset - (even and t < 0)) * multiplier >> 32 - shift) - bias; multiplier is a uint32. */
typedef struct {
  int32_t multiplier, even, offset, shift, bias;
} tinyet_average_mve;

typedef struct {
  tinyet_adaptive_avg_pool2d_shape shape;
  const int32_t *divisions; /* tinyet_average_mve for windows of first_count, first_count + 1, ... pixels */
  int32_t first_count;
} tinyet_adaptive_avg_pool2d_mve_params;

/* Of int8 up to 256 pixels a window, whose sum int16 holds. */
void tinyet_adaptive_avg_pool2d_s8_mve(const int8_t *input, int8_t *output,
                                       const tinyet_adaptive_avg_pool2d_mve_params *params);
void tinyet_adaptive_avg_pool2d_s16_mve(const int16_t *input, int16_t *output,
                                        const tinyet_adaptive_avg_pool2d_mve_params *params);

#ifdef __cplusplus
}
#endif

#endif
