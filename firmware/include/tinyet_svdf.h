/* SPDX-License-Identifier: Apache-2.0 */
/* A step of a layer whose matrix over time is of low rank: x, [batch][inputs], is multiplied by the features' weights of each
 * filter; the state, [batch][filters][memory], keeps what that came to, the oldest first; a unit is the sum of its `rank`
 * filters over time. state_n is the state behind the step; it, or y, may lie over the state. */
#ifndef TINYET_SVDF_H
#define TINYET_SVDF_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t batch, inputs, filters, memory, units, rank;
} tinyet_svdf_shape;

/* The parameters with a state of TYPE. */
#define TINYET_SVDF_PARAMS(TYPE)                                                                                     \
  struct {                                                                                                           \
    tinyet_svdf_shape shape;                                                                                         \
    const TINYET_ROM int8_t *feature; /* [filters / 4][inputs / 4][4][4], rounded up: four inputs of four filters */ \
    const TINYET_ROM int32_t *feature_bias;   /* [filters], rounded up to fours; the zero point of x is in it */     \
    const TINYET_ROM TYPE *time;              /* [filters][memory] */                                                \
    const TINYET_ROM int32_t *bias;           /* [units], the zero point of the state is in it */                    \
    int32_t feature_multiplier, feature_form; /* as tinyet_requantize_form has them */                               \
    int32_t state_zero_point;                                                                                        \
    int32_t multiplier, shift; /* as tinyet_requantize has them */                                                   \
    int32_t zero_point, clamp_low, clamp_high;                                                                       \
  }

typedef TINYET_SVDF_PARAMS(int8_t) tinyet_svdf_s8_params;
typedef TINYET_SVDF_PARAMS(int16_t) tinyet_svdf_s8_s16_params;

typedef struct {
  tinyet_svdf_shape shape;
  const TINYET_ROM float *feature; /* [filters][inputs] */
  const TINYET_ROM float *time;    /* [filters][memory] */
  const TINYET_ROM float *bias;    /* [units] */
  float clamp_low, clamp_high;
} tinyet_svdf_f32_params;

void tinyet_svdf_s8(const int8_t *x, const int8_t *state, int8_t *y, int8_t *state_n,
                    const tinyet_svdf_s8_params *params);
void tinyet_svdf_s8_s16(const int8_t *x, const int16_t *state, int8_t *y, int16_t *state_n,
                        const tinyet_svdf_s8_s16_params *params);
void tinyet_svdf_f32(const float *x, const float *state, float *y, float *state_n,
                     const tinyet_svdf_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
