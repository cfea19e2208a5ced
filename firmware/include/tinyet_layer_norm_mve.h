/* SPDX-License-Identifier: Apache-2.0 */
/* Layer normalisation for cores with Helium, four values at a time: see tinyet_layer_norm.h, tinyet_mve.h. */
#ifndef TINYET_LAYER_NORM_MVE_H
#define TINYET_LAYER_NORM_MVE_H

#include "tinyet_layer_norm.h"
#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As tinyet_layer_norm_s8_params. left: so that 2^(11 - left) is above the root of count, and at most twice that; weight is times
 * that, too, and bias has half of 2^shift in it. */
typedef struct {
  const int32_t *weight, *bias;
  int64_t epsilon;
  int32_t rows, count;
  int32_t half_fraction;
  int32_t shift, left;
  int32_t in_zero_point, out_zero_point;
} tinyet_layer_norm_s8_mve_params;

/* The output may be the input. */
void tinyet_layer_norm_s8_mve(const int8_t *input, int8_t *output, const tinyet_layer_norm_s8_mve_params *params);

#ifdef __cplusplus
}
#endif

#endif
