/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums along one dimension of [outer][depth][inner]. The output may lie over the input. */
#ifndef TINYET_CUMSUM_H
#define TINYET_CUMSUM_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t outer, depth, inner;
} tinyet_cumsum_shape;

typedef struct {
  tinyet_cumsum_shape shape;
  int32_t in_zero_point;
  int32_t multiplier;
  int32_t shift;
  int32_t out_zero_point;
} tinyet_cumsum_s8_params;

void tinyet_cumsum_s8(const int8_t *input, int8_t *output, const tinyet_cumsum_s8_params *params);

/* Sums start at 0. */
void tinyet_cumsum_f32(const float *input, float *output, const tinyet_cumsum_shape *shape);

#ifdef __cplusplus
}
#endif

#endif
