/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_rows.h"

#include <string.h>

void tinyet_rows_drop(void *window, uint32_t dropped, uint32_t kept) {
  /* Small C libraries move byte by byte. From the start on: what has been read may be written over. */
  if (((uintptr_t)window & 3u) == 0u && ((dropped | kept) & 3u) == 0u && dropped >= 16u) {
    uint8_t *to = (uint8_t *)window;
    const uint8_t *from = to + dropped;
    for (; kept >= 16u; kept -= 16u) {
      /* Sixteen bytes that do not meet those that they go to. */
      memcpy(__builtin_assume_aligned(to, 4), __builtin_assume_aligned(from, 4), 16u);
      to += 16;
      from += 16;
    }
    for (; kept != 0u; kept -= 4u) {
      memcpy(__builtin_assume_aligned(to, 4), __builtin_assume_aligned(from, 4), 4u);
      to += 4;
      from += 4;
    }
    return;
  }
  memmove(window, (const uint8_t *)window + dropped, (size_t)kept);
}

void tinyet_rows_fill(void *rows, int32_t value, uint32_t bytes) { memset(rows, (int)value, (size_t)bytes); }
