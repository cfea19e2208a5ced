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

/* Windows one above the other: the rows of window i are from window[i][0] up to window[i][1], all whole words. Moves
 * those from number `first` to `last`, with what is between them, by so many bytes; one that is empty stays. */
void tinyet_line_buffer_shift(uint8_t *window[][2], uint32_t first, uint32_t last, int32_t by);

/* Scratch memory, aligned to eight bytes as the arena is, on top of all windows. On an AVR nothing is aligned: from an arena at
 * another address one would get to bytes that the plan gave to others. */
static inline void *tinyet_line_buffer_top(uint8_t *end) {
#if defined(__AVR__)
  return end;
#else
  return end + ((8u - ((uintptr_t)end & 7u)) & 7u);
#endif
}

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
