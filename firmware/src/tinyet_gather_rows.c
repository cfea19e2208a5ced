/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_gather.h"

#include <string.h>

void tinyet_gather_rows(const void *input, const int32_t *places, void *output,
                        const tinyet_gather_rows_params *params) {
  const int32_t size = params->size, row_bytes = params->row_bytes;
  const uint8_t *x = (const uint8_t *)input;
  uint8_t *out = (uint8_t *)output;
  for (int32_t o = 0; o < params->outer; o++) {
    for (int32_t k = 0; k < params->count; k++) {
      memcpy(out, x + tinyet_gather_place(places[k], size) * row_bytes, (size_t)row_bytes);
      out += row_bytes;
    }
    x += size * row_bytes;
  }
}
