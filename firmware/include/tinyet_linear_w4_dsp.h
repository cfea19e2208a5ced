/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised int8 fully connected layers with int4 weights, one row at a time, whose products, rounding and stores are a printed tile
 * of one pixel and crossed digits (tinyet/tiles, tinyet_tile_w4_dsp.h): what is around it, which widens a row.
 *
 * Each four inputs are pairs (0, 2) and (1, 3). The weight stream is that of the tile, of four outputs after another; those that
 * are missing at its end are the last one again. */
#ifndef TINYET_LINEAR_W4_DSP_H
#define TINYET_LINEAR_W4_DSP_H

#include "tinyet_tile_w4_dsp.h"

/* What inputs add to sums of crossed digits: the products of (0, 1) and of (2, 3), and eight times all inputs. */
typedef struct {
  int32_t products, eights;
} tinyet_surplus_dsp;

TINYET_DSP_INLINE void tinyet_put_four_dsp(uint32_t *to, uint32_t word, tinyet_surplus_dsp *s) {
  const uint32_t even = tinyet_even_bytes_dsp(word), odd = tinyet_odd_bytes_dsp(word);
  to[0] = even;
  to[1] = odd;
  s->products = tinyet_smlad_dsp(even, odd, s->products);
  s->eights = tinyet_smlad_dsp(tinyet_add_int16x2_dsp(even, odd), 0x00080008u, s->eights);
}

/* A row as the tile wants it: the pairs, whose last four inputs zeros fill up, then what the inputs add, of channel a shifted by
 * `lift`. */
TINYET_DSP_INLINE void tinyet_digits_row_dsp(uint32_t *to, const int8_t *from, const int32_t depth, const int32_t lift) {
  tinyet_surplus_dsp s = {0, 0};
  int32_t left = depth;
#pragma GCC unroll 1
  for (; left >= 16; left -= 16, from += 16, to += 8) {
#pragma GCC unroll 4
    for (int32_t k = 0; k < 4; k++) {
      tinyet_put_four_dsp(to + 2 * k, tinyet_load_dsp(from + 4 * k), &s);
    }
  }
#pragma GCC unroll 1
  for (; left >= 4; left -= 4, from += 4, to += 2) {
    tinyet_put_four_dsp(to, tinyet_load_dsp(from), &s);
  }
  if (left != 0) {
    uint32_t word = 0;
    memcpy(&word, from, (size_t)left);
    tinyet_put_four_dsp(to, word, &s);
    to += 2;
  }
  to[0] = (uint32_t)(s.products + s.eights) << lift;
  to[1] = (uint32_t)(16 * s.eights);
  to[2] = (uint32_t)(257 * s.eights);
}

/* Rows of inputs to rows of outputs. scratch: the inputs of the tile. words: of its stream, for four outputs. lift: that of the
 * tile; all but pointers are literals. */
TINYET_DSP_INLINE void tinyet_linear_s8_w4_1x4_dsp(const int8_t *input, int8_t *output, void *scratch, const int32_t *weights,
                                                   const int32_t rows, const int32_t depth, const int32_t count,
                                                   const int32_t lift, const int32_t words, const int32_t low,
                                                   const int32_t high, const tinyet_tile_function_dsp tile) {
  uint32_t *const pixels = (uint32_t *)scratch;
  const int32_t whole = count & ~3;
  for (int32_t row = 0; row < rows; row++) {
    tinyet_digits_row_dsp(pixels, input, depth, lift);
    if (whole != 0) {
      tile(weights, pixels, output, output + whole);
    }
    if (count != whole) {
      int8_t last[4];
      tile(weights + whole / 4 * words, pixels, last, last + 4);
      memcpy(output + whole, last, (size_t)(count - whole));
    }
    if (low > -128 || high < 127) {
      for (int32_t i = 0; i < count; i++) {
        output[i] = (int8_t)tinyet_clamp(output[i], low, high);
      }
    }
    input += depth;
    output += count;
  }
}

#endif
