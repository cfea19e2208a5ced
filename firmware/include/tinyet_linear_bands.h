/* SPDX-License-Identifier: Apache-2.0 */
/* A product with a matrix whose rows are zero but for a run of columns: x [rows][columns] to [rows][count]. */
#ifndef TINYET_LINEAR_BANDS_H
#define TINYET_LINEAR_BANDS_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const TINYET_ROM float *weights; /* of all runs, one behind the other */
  const TINYET_ROM int32_t *runs;  /* [count][2]: the first column, and how many */
  int32_t rows, columns, count;
} tinyet_linear_bands_f32_params;

/* Sums begin with 0; products are added from the first column to the last. */
void tinyet_linear_bands_f32(const float *input, float *output, const tinyet_linear_bands_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
