/* SPDX-License-Identifier: Apache-2.0 */
/* A converter's integers as int16 samples. */
#ifndef TINYET_SAMPLES_H
#define TINYET_SAMPLES_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ((x & mask) >> shift) - offset, saturated; mask is -1, or 0xffff where 16 bits are an unsigned number. */
typedef struct {
  int32_t count;
  int32_t mask;
  int32_t shift, offset;
} tinyet_samples_params;

void tinyet_samples_s16(const int16_t *input, int16_t *output, const tinyet_samples_params *params);

void tinyet_samples_s32_s16(const int32_t *input, int16_t *output, const tinyet_samples_params *params);

#ifdef __cplusplus
}
#endif

#endif
