/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table chosen by indices. */
#ifndef TINYET_EMBEDDING_H
#define TINYET_EMBEDDING_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t count;     /* indices */
  int32_t rows;      /* of the table */
  int32_t row_bytes; /* of the table and of the output */
} tinyet_embedding_params;

/* An index outside the table takes its first or last row. */
void tinyet_embedding(const int32_t *indices, const void *table, void *output, const tinyet_embedding_params *params);

#ifdef __cplusplus
}
#endif

#endif
