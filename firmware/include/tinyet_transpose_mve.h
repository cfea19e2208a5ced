/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices of int8 transposed by cores with Helium: rows or columns, whichever are sixteen or fewer, one after another, sixteen
 * values at a time. */
#ifndef TINYET_TRANSPOSE_MVE_H
#define TINYET_TRANSPOSE_MVE_H

#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of the input. Rows or columns: at most 16. */
typedef struct {
  int32_t matrices, rows, columns;
} tinyet_transpose_s8_mve_params;

/* The output is not the input. */
void tinyet_transpose_s8_mve(const int8_t *input, int8_t *output, const tinyet_transpose_s8_mve_params *params);

#ifdef __cplusplus
}
#endif

#endif
