/* SPDX-License-Identifier: Apache-2.0 */
/* A factor and an offset for each channel, for cores with Helium, four values at a time: see tinyet_batch_norm.h.
 * The output may be the input. */
#ifndef TINYET_BATCH_NORM_MVE_H
#define TINYET_BATCH_NORM_MVE_H

#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* values: weight, bias, multiplier and shift, -1 ... -31. Of [outer][channels] four vectors for each four channels;
 * where inner is above 1, four words for each channel. Multipliers have 31 bits. */
typedef struct {
  int32_t outer, channels, inner;
  const int32_t *values;
  int32_t zero_point, low, high; /* of outputs */
} tinyet_batch_norm_mve_params;

void tinyet_batch_norm_s8_mve(const int8_t *input, int8_t *output, const tinyet_batch_norm_mve_params *params);
void tinyet_batch_norm_s16_mve(const int16_t *input, int16_t *output, const tinyet_batch_norm_mve_params *params);

#ifdef __cplusplus
}
#endif

#endif
