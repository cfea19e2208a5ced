/* SPDX-License-Identifier: Apache-2.0 */
/* Index of the greatest element along an axis. Input [outer][count][inner], output [outer][inner]. */
#ifndef TINYET_ARGMAX_H
#define TINYET_ARGMAX_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t outer, count, inner;
} tinyet_argmax_params;

/* The first of equal elements. */
void tinyet_argmax_s8(const int8_t *input, int32_t *output, const tinyet_argmax_params *params);
void tinyet_argmax_s16(const int16_t *input, int32_t *output, const tinyet_argmax_params *params);
void tinyet_argmax_s32(const int32_t *input, int32_t *output, const tinyet_argmax_params *params);

/* The first NaN if there is one, as PyTorch and numpy have it. */
void tinyet_argmax_f32(const float *input, int32_t *output, const tinyet_argmax_params *params);

#ifdef __cplusplus
}
#endif

#endif
