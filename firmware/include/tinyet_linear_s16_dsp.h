/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised fully connected layers with int16 activations, one row at a time, whose products are a printed tile of one pixel
 * (tinyet/tiles, tinyet_tile_s16_dsp.h): what is around it.
 *
 * The weight stream is that of the tile, of four outputs after another; those that are missing at its end are the last one again.
 * Where sums of all inputs have more than 32 bits, the inputs are in parts, whose products with the multiplier are added up in 64
 * bits: of four outputs after another, the multiplier of each, then the stream of each part, of which the first has the bias. */
#ifndef TINYET_LINEAR_S16_DSP_H
#define TINYET_LINEAR_S16_DSP_H

#include "tinyet_tile_s16_dsp.h"

/* A row of inputs as pairs, with zeros behind. */
TINYET_DSP_INLINE void tinyet_put_row_dsp(uint32_t *to, const int16_t *from, int32_t depth, const uint32_t *end) {
  for (; depth >= 8; depth -= 8, from += 8, to += 4) {
    TINYET_DSP_UNKNOWN(depth); /* or it becomes a call of memcpy */
    tinyet_put_int16x2_dsp(to, from, 8, 1);
  }
  for (; depth >= 2; depth -= 2, from += 2) {
    TINYET_DSP_UNKNOWN(depth);
    *to++ = tinyet_load_int16x2_dsp(from);
  }
  if (depth != 0) {
    *to++ = (uint16_t)*from;
  }
  for (; to != end; to++) {
    TINYET_DSP_UNKNOWN(to);
    *to = 0;
  }
}

/* Rows of inputs to rows of outputs. scratch: the inputs of the tile. words: of its stream, for four outputs. pairs: of inputs.
 * All but pointers are literals. */
TINYET_DSP_INLINE void tinyet_linear_s16_dsp(const int16_t *input, int16_t *output, void *scratch, const int32_t *weights,
                                             const int32_t rows, const int32_t depth, const int32_t count, const int32_t words,
                                             const int32_t pairs, const tinyet_tile_function_dsp tile) {
  uint32_t *const pixels = (uint32_t *)scratch;
  const int32_t whole = count & ~3;
  for (int32_t row = 0; row < rows; row++) {
    tinyet_put_row_dsp(pixels, input, depth, pixels + pairs);
    if (whole != 0) {
      tile(weights, pixels, output, output + whole);
    }
    if (count != whole) {
      int16_t last[4];
      tile(weights + whole / 4 * words, pixels, last, last + 4);
      for (int32_t k = 0; k < count - whole; k++) {
        tinyet_store_s16_dsp(output + whole + k, last[k]);
      }
    }
    input += depth;
    output += count;
  }
}

/* The same by `parts`, each of so many pairs and words. tile: of sums. */
TINYET_DSP_INLINE void tinyet_linear_s16_parts_dsp(const int16_t *input, int16_t *output, void *scratch, const int32_t *weights,
                                                   const int32_t rows, const int32_t depth, const int32_t count,
                                                   const int32_t parts, const int32_t words, const int32_t pairs,
                                                   const tinyet_tile_function_dsp tile,
                                                   const tinyet_rounding_s16_dsp rounding) {
  uint32_t *const pixels = (uint32_t *)scratch;
  for (int32_t row = 0; row < rows; row++) {
    tinyet_put_row_dsp(pixels, input, depth, pixels + parts * pairs);
    const int32_t *w = weights;
    for (int32_t first = 0; first < count; first += 4) {
      const int32_t *const multipliers = w;
      int64_t totals[4];
      for (int32_t k = 0; k < 4; k++) {
        totals[k] = tinyet_half_s16_dsp(rounding);
      }
      w += 4;
      for (int32_t part = 0; part < parts; part++, w += words) {
        int32_t sums[4];
        TINYET_DSP_UNKNOWN(part);
        tile(w, pixels + part * pairs, sums, sums + 4);
        for (int32_t k = 0; k < 4; k++) {
          totals[k] += (int64_t)sums[k] * multipliers[k];
        }
      }
      for (int32_t k = 0; k < 4 && first + k < count; k++) {
        tinyet_store_s16_dsp(output + first + k, tinyet_clamp_s16_dsp((int32_t)(totals[k] >> 32), rounding));
      }
    }
    input += depth;
    output += count;
  }
}

#endif
