/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_transpose.h"

#include <string.h>

/* Which item comes to a place of the output, whose rows are the input's columns. */
static inline uint32_t source_of(uint32_t place, uint32_t rows, uint32_t columns) {
  const uint32_t column = place / rows;
  return (place - column * rows) * columns + column;
}

/* A permutation is cycles: each item goes to the place that the last one has left. done: places that have their item.
 * In one of the two calls that there are, items are bytes, so that to move one costs no call. */
static inline void transpose(uint8_t *items, uint32_t *done, uint8_t *held, uint32_t rows, uint32_t columns,
                             size_t item_bytes) {
  const uint32_t count = rows * columns;
  memset(done, 0, (size_t)((count + 31u) / 32u) * sizeof *done);
  for (uint32_t first = 1u; first + 1u < count; first++) { /* the outermost stay where they are */
    if ((done[first >> 5] >> (first & 31u) & 1u) != 0u) {
      continue;
    }
    uint32_t place = first;
    uint32_t from = source_of(place, rows, columns);
    if (from == first) {
      continue;
    }
    memcpy(held, items + (size_t)first * item_bytes, item_bytes);
    while (from != first) {
      memcpy(items + (size_t)place * item_bytes, items + (size_t)from * item_bytes, item_bytes);
      place = from;
      done[place >> 5] |= UINT32_C(1) << (place & 31u);
      from = source_of(place, rows, columns);
    }
    memcpy(items + (size_t)place * item_bytes, held, item_bytes);
  }
}

void tinyet_transpose(const void *input, void *output, void *scratch, const tinyet_transpose_params *params) {
  const uint32_t rows = params->rows;
  const uint32_t columns = params->columns;
  const size_t item_bytes = (size_t)params->item_bytes;
  const size_t bytes = (size_t)(rows * columns) * item_bytes;
  uint32_t *done = (uint32_t *)scratch;
  uint8_t *held = (uint8_t *)(done + (rows * columns + 31u) / 32u);
  uint8_t *items = (uint8_t *)output;
  if (input != output) {
    memcpy(output, input, (size_t)params->matrices * bytes);
  }
  for (uint32_t matrix = 0u; matrix < params->matrices; matrix++) {
    if (item_bytes == 1u) {
      transpose(items, done, held, rows, columns, 1u);
    } else {
      transpose(items, done, held, rows, columns, item_bytes);
    }
    items += bytes;
  }
}
