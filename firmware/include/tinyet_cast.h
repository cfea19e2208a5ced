/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers as float: the nearest one, ties to even. Bytes are exact. */
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

#ifdef __cplusplus
}
#endif

#endif
