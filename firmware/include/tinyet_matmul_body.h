/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix multiplication of integers of any type. The file that includes this has defined
 *
 *   KERNEL          the function's name
 *   element         the type of the elements
 *   kernel_params   its parameters
 *   row_by_matrix(row, matrix, output, params)   one row of the output */
#ifndef TINYET_MATMUL_BODY_H
#define TINYET_MATMUL_BODY_H

#include "tinyet_matmul.h"

void KERNEL(const element *a, const element *b, element *output, const kernel_params *params) {
  for (int32_t i = 0; i < params->count; i++) {
    const element *row = a + params->batches[2 * i];
    const element *const matrix = b + params->batches[2 * i + 1];
    for (int32_t m = 0; m < params->rows; m++) {
      row_by_matrix(row, matrix, output, params);
      row += params->depth;
      output += params->columns;
    }
  }
}

#endif
