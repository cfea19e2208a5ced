/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix of items transposed where it lies: permute where there is no room for its output beside its input. */
#ifndef TINYET_TRANSPOSE_H
#define TINYET_TRANSPOSE_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `matrices` of rows x columns items, of so many bytes each. */
typedef struct {
  uint32_t matrices;
  uint32_t rows;
  uint32_t columns;
  uint32_t item_bytes;
} tinyet_transpose_params;

/* The output may be the input, or lie apart from it. scratch: a bit for each item of a matrix, in whole words, and
 * behind them an item. */
void tinyet_transpose(const void *input, void *output, void *scratch, const tinyet_transpose_params *params);

#ifdef __cplusplus
}
#endif

#endif
