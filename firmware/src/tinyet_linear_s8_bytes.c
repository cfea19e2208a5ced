/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_byte_products.h"

void tinyet_linear_s8_bytes(const int8_t *input, int8_t *output, void *scratch,
                            const tinyet_linear_s8_bytes_params *params) {
  const tinyet_packed_words *const words = &params->words;
  const tinyet_extent depth = TINYET_EXTENT(params->depth), count = TINYET_EXTENT(words->out_c);
  const uint8_t step = words->two_sided != 0 ? 7u : 5u;
  for (tinyet_extent row = TINYET_EXTENT(params->rows); row > 0; row--) {
    uint8_t *u = (uint8_t *)scratch;
    uint32_t total = 0u;
    for (tinyet_extent i = depth; i > 0; i--) {
      const uint8_t value = (uint8_t)((uint8_t)*input++ ^ 0x80u);
      *u++ = value;
      total += value;
    }
    const uint32_t less = total << 7;
    const TINYET_ROM uint32_t *f = words->stream;
    const TINYET_ROM uint8_t *w = params->weights;
    for (tinyet_extent c = count; c > 0; c--) {
      const uint32_t sum = f[0] - less + tinyet_bytes_1x1((const uint8_t *)scratch, w, depth);
      *output++ = tinyet_bytes_output(sum, f + 1, words);
      f += step;
      w += depth;
    }
  }
}
