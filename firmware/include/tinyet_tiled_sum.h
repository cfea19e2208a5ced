/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the pixels of an image that comes in tiles of rows, one call a tile. `state` is int32: how many tiles are
 * done, then a sum for each channel; all of it is 0 before the first tile. The output is written with the last one. */
#ifndef TINYET_TILED_SUM_H
#define TINYET_TILED_SUM_H

#include "tinyet_average.h"
#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t tiles;
  int32_t pixels; /* of a tile */
  int32_t channels;
} tinyet_tiled_sum_shape;

typedef struct {
  tinyet_tiled_sum_shape shape;
  int32_t bias;       /* minus the input's zero point times the number of elements summed */
  int32_t multiplier; /* for a mean, 1 / count is in here */
  int32_t shift;
  int32_t out_zero_point;
} tinyet_tiled_sum_params;

typedef struct {
  tinyet_tiled_sum_shape shape;
  const TINYET_ROM int32_t *division; /* a tinyet_division */
} tinyet_tiled_average_params;

void tinyet_tiled_sum_s8(const int8_t *input, int8_t *output, void *state, const tinyet_tiled_sum_params *params);
void tinyet_tiled_sum_s16(const int16_t *input, int16_t *output, void *state, const tinyet_tiled_sum_params *params);

/* Ties away from zero. */
void tinyet_tiled_average_s8(const int8_t *input, int8_t *output, void *state,
                             const tinyet_tiled_average_params *params);
void tinyet_tiled_average_s16(const int16_t *input, int16_t *output, void *state,
                              const tinyet_tiled_average_params *params);

#ifdef __cplusplus
}
#endif

#endif
