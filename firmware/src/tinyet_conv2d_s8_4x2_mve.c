/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_mve.h"

#define LANES 16

/* Of two channels, of so many columns. */
static void add_products(int32_t *sums, const int8_t *weights, const int8_t *at, const int32_t *taps, int32_t count,
                         const tinyet_sums_shape_mve *s) {
  for (int32_t kx = 0; kx < count; kx++, weights += 2 * LANES) {
    const int8_t *const tap = at + taps[kx] * s->column;
    for (int32_t i = 0; i < s->pixels; i++) {
      for (int32_t k = 0; k < LANES; k++) {
        sums[i] += tap[i * s->step + k] * weights[k];
        sums[s->pixels + i] += tap[i * s->step + k] * weights[LANES + k];
      }
    }
  }
}

#include "tinyet_block_sums_mve_body.h"

void tinyet_blocks_mve_twin(const int8_t *weights, const int8_t *pixels, tinyet_blocks_mve *b, const int32_t *taps,
                            const tinyet_sums_shape_mve *s) {
  for (; b->count != 0; b->count--, pixels += b->block_in, b->to += 4 * b->groups + b->behind) {
    const int32_t *sums = b->sums, *ends = b->ends;
    add_sums(weights, pixels, b->sums, b->sums_end, taps, s);
    for (int32_t c = 0; c < 4 * b->groups; c++, ends += 2) {
      for (int32_t p = 0; p < s->pixels; p++) {
        b->to[p * b->step + c] = tinyet_round_mve(*sums++, ends[0], ends[1], b->rounding);
      }
    }
  }
}
