/* SPDX-License-Identifier: Apache-2.0 */
/* Line buffers: windows of an image's rows, the oldest row at the start, without gaps. */
#ifndef TINYET_LINE_BUFFERS_H
#define TINYET_LINE_BUFFERS_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Forgets the first `gone` bytes of a window, and moves the `kept` bytes behind them to its start. */
void tinyet_line_buffer_drop(void *window, uint32_t gone, uint32_t kept);

/* Windows one directly behind the other: window i begins at window[i] and ends where the next begins, the last one,
 * number `last` - 1, at window[last]. Makes room for `bytes` bytes at the end of window `number`; sizes are whole words. */
void tinyet_line_buffer_open(uint8_t *window[], uint32_t number, uint32_t last, uint32_t bytes);

/* Forgets the first `bytes` bytes of window `number`: all that is behind them moves down. */
void tinyet_line_buffer_close(uint8_t *window[], uint32_t number, uint32_t last, uint32_t bytes);

/* Scratch memory, aligned to eight bytes, on top of all windows. */
static inline void *tinyet_line_buffer_top(uint8_t *end) { return end + ((8u - ((uintptr_t)end & 7u)) & 7u); }

/* Sets what lies above or below an image. */
void tinyet_line_buffer_fill(void *rows, int value, uint32_t bytes);

/* The same of an image of int16_t. */
void tinyet_line_buffer_fill_s16(void *rows, int32_t value, uint32_t bytes);

/* Copies the first row of an image to `count` rows above it, which begin at `rows`. */
void tinyet_line_buffer_edge_above(void *rows, uint32_t row_bytes, uint32_t count);

/* Copies the last row of an image to `count` rows below it, which begin at `rows`. */
void tinyet_line_buffer_edge_below(void *rows, uint32_t row_bytes, uint32_t count);

#ifdef __cplusplus
}
#endif

#endif
