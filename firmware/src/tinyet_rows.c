/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_rows.h"

#include <stdbool.h>
#include <string.h>

/* Bytes moved at once; they do not meet those that they go to. */
#define BLOCK 16u

void tinyet_rows_move(void *target, const void *source, uint32_t bytes) {
  uint8_t *to = (uint8_t *)target;
  const uint8_t *from = (const uint8_t *)source;
  const uintptr_t down = (uintptr_t)from - (uintptr_t)to; /* huge where it goes up */
  const bool up_and_over = (uintptr_t)to - (uintptr_t)from < bytes;
  /* Small C libraries move byte by byte. From the start on: what has been read may be written over. */
  if ((((uintptr_t)to | (uintptr_t)from | bytes) & 3u) == 0u && down >= BLOCK && !up_and_over) {
    for (; bytes >= BLOCK; bytes -= BLOCK) {
      memcpy(__builtin_assume_aligned(to, 4), __builtin_assume_aligned(from, 4), BLOCK);
      to += BLOCK;
      from += BLOCK;
    }
    for (; bytes != 0u; bytes -= 4u) {
      memcpy(__builtin_assume_aligned(to, 4), __builtin_assume_aligned(from, 4), 4u);
      to += 4;
      from += 4;
    }
    return;
  }
  memmove(target, source, (size_t)bytes);
}

void tinyet_rows_fill(void *rows, int32_t value, uint32_t bytes) { memset(rows, (int)value, (size_t)bytes); }
