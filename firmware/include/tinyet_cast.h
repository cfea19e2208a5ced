/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers as float: the nearest one, ties to even. Bytes are exact. Between integers the lowest bits are kept. */
#ifndef TINYET_CAST_H
#define TINYET_CAST_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t count;
} tinyet_cast_params;

void tinyet_cast_u8_f32(const uint8_t *input, float *output, const tinyet_cast_params *params);

void tinyet_cast_s32_f32(const int32_t *input, float *output, const tinyet_cast_params *params);

void tinyet_cast_s8_s32(const int8_t *input, int32_t *output, const tinyet_cast_params *params);

void tinyet_cast_s16_s32(const int16_t *input, int32_t *output, const tinyet_cast_params *params);

void tinyet_cast_s32_s8(const int32_t *input, int8_t *output, const tinyet_cast_params *params);

void tinyet_cast_s32_s16(const int32_t *input, int16_t *output, const tinyet_cast_params *params);

#ifdef __cplusplus
}
#endif

#endif
