/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of rows: the oldest row at the start, without gaps. */
#ifndef TINYET_ROWS_H
#define TINYET_ROWS_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Forgets the first `dropped` bytes of a window, and moves the `kept` bytes behind them to its start. */
void tinyet_rows_drop(void *window, uint32_t dropped, uint32_t kept);

/* Sets what lies above or below an image. */
void tinyet_rows_fill(void *rows, int32_t value, uint32_t bytes);

#ifdef __cplusplus
}
#endif

#endif
