/* SPDX-License-Identifier: Apache-2.0 */
/* A factor and an offset for each channel. The input is [outer][channels][inner]; the output may be the input. */
#ifndef TINYET_BATCH_NORM_H
#define TINYET_BATCH_NORM_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t outer, channels, inner;
  const TINYET_ROM int8_t *weights;
  const TINYET_ROM int32_t *bias; /* minus the input's zero point times the weight */
  const TINYET_ROM int32_t *multiplier;
  const TINYET_ROM int8_t *shift;
  int32_t out_zero_point;
  int32_t clamp_low, clamp_high;
} tinyet_batch_norm_s8_params;

/* int16 has no zero points; sums have 64 bits. */
typedef struct {
  int32_t outer, channels, inner;
  const TINYET_ROM int16_t *weights;
  const TINYET_ROM int64_t *bias;
  const TINYET_ROM int16_t *multiplier; /* as tinyet_requantize_s64 takes it, and so is the shift */
  const TINYET_ROM int8_t *shift;
  int32_t clamp_low, clamp_high;
} tinyet_batch_norm_s16_params;

typedef struct {
  int32_t outer, channels, inner;
  float clamp_low, clamp_high;
} tinyet_batch_norm_f32_params;

void tinyet_batch_norm_s8(const int8_t *input, int8_t *output, const tinyet_batch_norm_s8_params *params);

void tinyet_batch_norm_s16(const int16_t *input, int16_t *output, const tinyet_batch_norm_s16_params *params);

void tinyet_batch_norm_f32(const float *input, const float *multiplier, const float *offset, float *output,
                           const tinyet_batch_norm_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
