/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of rows: the oldest row at the start, without gaps. */
#ifndef TINYET_ROWS_H
#define TINYET_ROWS_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Moves `bytes` bytes, which may lie partly over where they go. */
void tinyet_rows_move(void *target, const void *source, uint32_t bytes);

/* Sets what lies above or below an image. */
void tinyet_rows_fill(void *rows, int32_t value, uint32_t bytes);

#ifdef __cplusplus
}
#endif

#endif
