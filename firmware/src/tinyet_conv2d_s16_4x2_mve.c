/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_mve.h"

/* Of two channels, of so many columns. */
static void add_products(int32_t *sums, const int8_t *weights, const int8_t *at, const int32_t *taps, int32_t count,
                         const tinyet_sums_shape_mve *s) {
  for (int32_t kx = 0; kx < count; kx++, weights += 16) {
    for (int32_t i = 0; i < s->pixels; i++) {
      int16_t values[8];
      memcpy(values, at + taps[kx] * s->column + i * s->step, sizeof values);
      for (int32_t k = 0; k < 8; k++) {
        sums[i] += values[k] * weights[k];
        sums[s->pixels + i] += values[k] * weights[8 + k];
      }
    }
  }
}

static void add_sums(const int8_t *weights, const int8_t *pixels, int32_t *sums, const int32_t *end, const int32_t *taps,
                     const tinyet_sums_shape_mve *s) {
  const int32_t places = s->rows * s->depth, both = 2 * s->pixels;
  const size_t biases = (size_t)both * sizeof *sums;
  for (int32_t i = 0; s->chunks != 0 && i < places; i++, weights += 4) {
    const int8_t *const at = pixels + i / s->depth * s->row + i % s->depth * 16;
    const int32_t *tap = taps;
    for (int32_t c = 0; c < s->chunks; tap += taps[s->columns + c], c++) {
      for (int32_t *to = sums; to != end; to += both) {
        if (i == 0 && c == 0) {
          memcpy(to, weights, biases);
          weights += biases;
        }
        add_products(to, weights, at, tap, taps[s->columns + c], s);
        weights += 16 * taps[s->columns + c];
      }
    }
  }
  for (; s->chunks == 0 && sums != end; sums += both) {
    memcpy(sums, weights, biases);
    weights += biases;
    for (int32_t i = 0; i < places; i++, weights += 16 * s->columns) {
      add_products(sums, weights, pixels + i / s->depth * s->row + i % s->depth * 16, taps, s->columns, s);
    }
  }
}

void tinyet_blocks_s16_mve_twin(const int8_t *weights, const int8_t *pixels, tinyet_blocks_mve *b, const int32_t *taps,
                                const tinyet_sums_shape_mve *s, int32_t exponent) {
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
