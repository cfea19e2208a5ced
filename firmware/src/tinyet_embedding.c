/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_embedding.h"

#include <string.h>

void tinyet_embedding(const int32_t *indices, const void *table, void *output, const tinyet_embedding_params *params) {
  const uint8_t *const rows = (const uint8_t *)table;
  uint8_t *out = (uint8_t *)output;
  for (int32_t i = 0; i < params->count; i++) {
    const int32_t row = tinyet_clamp(indices[i], 0, params->rows - 1);
    memcpy(out, rows + row * params->row_bytes, (size_t)params->row_bytes);
    out += params->row_bytes;
  }
}
