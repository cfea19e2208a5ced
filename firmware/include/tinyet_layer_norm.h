/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of `count` elements, each to mean 0 and variance 1, then times weight plus bias. The output may be the input. */
#ifndef TINYET_LAYER_NORM_H
#define TINYET_LAYER_NORM_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const TINYET_ROM int32_t *weight; /* [count], over the output's scale, times 2^shift */
  const TINYET_ROM int32_t *bias;   /* [count], likewise */
  int64_t epsilon;                  /* times (count / input scale)^2, with its fraction bits */
  int32_t rows, count;              /* count <= 65535 */
  int32_t half_fraction;            /* the spread of a row and epsilon have twice as many fraction bits */
  int32_t shift;
  int32_t in_zero_point, out_zero_point;
} tinyet_layer_norm_s8_params;

void tinyet_layer_norm_s8(const int8_t *input, int8_t *output, const tinyet_layer_norm_s8_params *params);

typedef struct {
  const TINYET_ROM float *weight, *bias; /* [count] */
  float epsilon;
  int32_t rows, count;
} tinyet_layer_norm_f32_params;

void tinyet_layer_norm_f32(const float *input, float *output, const tinyet_layer_norm_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
