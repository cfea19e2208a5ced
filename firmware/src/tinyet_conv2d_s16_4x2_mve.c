/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_mve.h"

#define LANES 8

/* Of two channels, of so many columns. */
static void add_products(int32_t *sums, const int8_t *weights, const int8_t *at, const int32_t *taps, int32_t count,
                         const tinyet_sums_shape_mve *s) {
  for (int32_t kx = 0; kx < count; kx++, weights += 2 * LANES) {
    for (int32_t i = 0; i < s->pixels; i++) {
      int16_t values[LANES];
      memcpy(values, at + taps[kx] * s->column + i * s->step, sizeof values);
      for (int32_t k = 0; k < LANES; k++) {
        sums[i] += values[k] * weights[k];
        sums[s->pixels + i] += values[k] * weights[LANES + k];
      }
    }
  }
}

#include "tinyet_block_sums_mve_body.h"

void tinyet_blocks_s16_mve_reference(const int8_t *weights, const int8_t *pixels, tinyet_blocks_mve *b,
                                     const int32_t *taps, const tinyet_sums_shape_mve *s, int32_t exponent) {
  for (; b->count != 0; b->count--, pixels += b->block_in, b->to += 8 * b->groups + b->behind) {
    const int32_t *sums = b->sums, *end = b->ends;
    add_sums(weights, pixels, b->sums, b->sums_end, taps, s);
    for (int32_t c = 0; c < 4 * b->groups; c++, end++) {
      for (int32_t p = 0; p < s->pixels; p++) {
        const int16_t value = tinyet_round_s16_mve(*sums++, *end, exponent, b->low, b->high);
        memcpy(b->to + p * b->step + 2 * c, &value, sizeof value);
      }
    }
  }
}
