/* SPDX-License-Identifier: Apache-2.0 */
/* min(max(x, low), high). The output may be the input. */
#ifndef TINYET_CLIP_H
#define TINYET_CLIP_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t low, high;
  int32_t count;
} tinyet_clip_params;

typedef struct {
  float low, high; /* may be infinite */
  int32_t count;
} tinyet_clip_f32_params;

/* For equal scales and zero points. */
void tinyet_clip_s8(const int8_t *input, int8_t *output, const tinyet_clip_params *params);
void tinyet_clip_s16(const int16_t *input, int16_t *output, const tinyet_clip_params *params);

/* NaN stays NaN. */
void tinyet_clip_f32(const float *input, float *output, const tinyet_clip_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
