/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers as float. */
#ifndef TINYET_TO_FLOAT_H
#define TINYET_TO_FLOAT_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t count;
} tinyet_to_float_params;

/* The nearest float, ties to even. */
void tinyet_to_float_s32_f32(const int32_t *input, float *output, const tinyet_to_float_params *params);

#ifdef __cplusplus
}
#endif

#endif
