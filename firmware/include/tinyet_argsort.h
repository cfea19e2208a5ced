/* SPDX-License-Identifier: Apache-2.0 */
/* Where the greatest or the least elements of [outer][size][inner] are, along the middle dimension, in their order. */
#ifndef TINYET_ARGSORT_H
#define TINYET_ARGSORT_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t outer, size, inner; /* of the input */
  int32_t count;              /* of the output's middle dimension */
  int32_t descending;         /* 1: the greatest first */
} tinyet_argsort_params;

/* Of equal elements the first comes first; a NaN is greater than any number. The time rises with size * count. */
void tinyet_argsort_s8(const int8_t *input, int32_t *output, const tinyet_argsort_params *params);
void tinyet_argsort_s16(const int16_t *input, int32_t *output, const tinyet_argsort_params *params);
void tinyet_argsort_f32(const float *input, int32_t *output, const tinyet_argsort_params *params);
void tinyet_argsort_s32(const int32_t *input, int32_t *output, const tinyet_argsort_params *params);

#ifdef __cplusplus
}
#endif

#endif
