/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_line_buffers.h"

#include <string.h>

/* Bytes moved at once, which must not meet those that they go to. Small C libraries move byte by byte. */
#define BLOCK 16u

/* Of whole words, as many bytes as the compiler knows. */
#define COPY_WORDS(to, from, bytes) memcpy(__builtin_assume_aligned(to, 4), __builtin_assume_aligned(from, 4), bytes)

/* To lower addresses, from the start on: what has been read may be written over. All are whole words. */
static void move_down(uint8_t *to, const uint8_t *from, uint32_t bytes) {
  if ((uintptr_t)from - (uintptr_t)to < BLOCK) {
    for (; bytes != 0u; bytes -= 4u, to += 4, from += 4) {
      COPY_WORDS(to, from, 4u);
    }
    return;
  }
  for (; bytes >= BLOCK; bytes -= BLOCK, to += BLOCK, from += BLOCK) {
    COPY_WORDS(to, from, BLOCK);
  }
  for (; bytes != 0u; bytes -= 4u, to += 4, from += 4) {
    COPY_WORDS(to, from, 4u);
  }
}

/* To higher addresses, from the end on. */
static void move_up(uint8_t *to, const uint8_t *from, uint32_t bytes) {
  to += bytes;
  from += bytes;
  if ((uintptr_t)to - (uintptr_t)from >= BLOCK) {
    for (; bytes >= BLOCK; bytes -= BLOCK) {
      to -= BLOCK;
      from -= BLOCK;
      COPY_WORDS(to, from, BLOCK);
    }
  }
  for (; bytes != 0u; bytes -= 4u) {
    to -= 4;
    from -= 4;
    COPY_WORDS(to, from, 4u);
  }
}

void tinyet_line_buffer_drop(void *window, uint32_t gone, uint32_t kept) {
  uint8_t *const to = (uint8_t *)window;
  if ((((uintptr_t)to | gone | kept) & 3u) == 0u) {
    move_down(to, to + gone, kept);
  } else {
    memmove(to, to + gone, (size_t)kept);
  }
}

void tinyet_line_buffer_shift(uint8_t *window[][2], uint32_t first, uint32_t last, int32_t by) {
  uint8_t *const start = window[first][0];
  const uint32_t bytes = (uint32_t)(window[last][1] - start);
  if (by < 0) {
    move_down(start + by, start, bytes);
  } else {
    move_up(start + by, start, bytes);
  }
  for (uint32_t i = first; i <= last; i++) {
    if (window[i][0] != window[i][1]) {
      window[i][0] += by;
      window[i][1] += by;
    }
  }
}

void tinyet_line_buffer_fill(void *rows, int value, uint32_t bytes) { memset(rows, value, (size_t)bytes); }

void tinyet_line_buffer_fill_s16(void *rows, int32_t value, uint32_t bytes) {
  int16_t *const to = (int16_t *)rows;
  for (uint32_t i = 0u; i < bytes / 2u; i++) {
    to[i] = (int16_t)value;
  }
}

void tinyet_line_buffer_edge_above(void *rows, uint32_t row_bytes, uint32_t count) {
  uint8_t *const to = (uint8_t *)rows;
  for (uint32_t i = 0u; i < count; i++) {
    memcpy(to + i * row_bytes, to + count * row_bytes, (size_t)row_bytes);
  }
}

void tinyet_line_buffer_edge_below(void *rows, uint32_t row_bytes, uint32_t count) {
  uint8_t *const to = (uint8_t *)rows;
  for (uint32_t i = 0u; i < count; i++) {
    memcpy(to + i * row_bytes, to - row_bytes, (size_t)row_bytes);
  }
}
