/* SPDX-License-Identifier: Apache-2.0 */
/* Recursive filters of second-order sections over x, [rows][steps], from a state [rows][count][2] on. */
#ifndef TINYET_BIQUADS_H
#define TINYET_BIQUADS_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const TINYET_ROM float *sections; /* [count][5]: b0, b1, b2, a1, a2 */
  int32_t rows, steps, count;
} tinyet_biquads_f32_params;

/* after: the state behind the last step. Each operation is rounded by itself. */
void tinyet_biquads_f32(const float *x, const float *state, float *y, float *after,
                        const tinyet_biquads_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
