/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised int8 fully connected layers, one row at a time, whose products, rounding and stores are a printed tile of one pixel
 * (tinyet/tiles, tinyet_tile_dsp.h): what is around it, which widens a row.
 *
 * Each four inputs are pairs (0, 2) and (1, 3). The weight stream is that of the tile, of four outputs after another; those that
 * are missing at its end are the last one again. */
#ifndef TINYET_LINEAR_TILES_DSP_H
#define TINYET_LINEAR_TILES_DSP_H

#include "tinyet_conv2d_dsp.h"
#include "tinyet_tile_dsp.h"

/* Four inputs; the products of (0, 1) and of (2, 3) are added to a sum. */
TINYET_DSP_INLINE int32_t tinyet_cross_four_dsp(uint32_t *to, const int8_t *from, int32_t products) {
  const uint32_t word = tinyet_load_dsp(from);
  const uint32_t even = tinyet_even_bytes_dsp(word), odd = tinyet_odd_bytes_dsp(word);
  to[0] = even;
  to[1] = odd;
  return tinyet_smlad_dsp(even, odd, products);
}

/* A row as a tile of crossed weights wants it: the pairs, whose last four inputs zeros fill up, then the sum of products of
 * neighbours, shifted by `lift`. */
TINYET_DSP_INLINE void tinyet_cross_row_dsp(uint32_t *to, const int8_t *from, const int32_t depth, const int32_t lift) {
  int32_t products = 0;
  for (int32_t i = 0; i < depth / 32; i++) {
#pragma GCC unroll 8
    for (int32_t k = 0; k < 8; k++) {
      products = tinyet_cross_four_dsp(to + 2 * k, from + 4 * k, products);
    }
    to += 16;
    from += 32;
  }
  for (int32_t i = 0; i < depth % 32 / 4; i++) {
    products = tinyet_cross_four_dsp(to, from, products);
    to += 2;
    from += 4;
  }
  if (depth % 4 != 0) {
    int8_t last[4] = {0};
    memcpy(last, from, (size_t)(depth % 4));
    products = tinyet_cross_four_dsp(to, last, products);
    to += 2;
  }
  to[0] = (uint32_t)products << lift;
}

/* Rows of inputs to rows of outputs. scratch: the inputs of the tile. words: of its stream, for four outputs. lift: of a
 * tile of crossed weights, or -1; all but pointers are literals. */
TINYET_DSP_INLINE void tinyet_linear_tiles_dsp(const int8_t *input, int8_t *output, void *scratch, const int32_t *weights,
                                               const int32_t rows, const int32_t depth, const int32_t count, const int32_t lift,
                                               const int32_t words, const tinyet_tile_function_dsp tile) {
  uint32_t *const pixels = (uint32_t *)scratch;
  const int32_t whole = count & ~3;
  for (int32_t row = 0; row < rows; row++) {
    if (lift >= 0) {
      tinyet_cross_row_dsp(pixels, input, depth, lift);
    } else {
      tinyet_widen_dsp(pixels, input, depth, 1);
    }
    if (whole != 0) {
      tile(weights, pixels, output, output + whole);
    }
    if (count != whole) {
      int8_t last[4];
      tile(weights + whole / 4 * words, pixels, last, last + 4);
      memcpy(output + whole, last, (size_t)(count - whole));
    }
    input += depth;
    output += count;
  }
}

#endif
