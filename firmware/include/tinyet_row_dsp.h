/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions that tinyet/tiles prints for a row of inputs and int8 weights that are bytes compute, in C: all outputs, four
 * at a time, for any factor and bounds.
 *
 * The inputs are pairs of int16. The weight stream, in words, for each four outputs a, b, c, d:
 *   bias a ... d | for each pair of inputs: bytes {a0, b0, a1, b1}, bytes {c0, d0, c1, d1} | for each: multiplier, offset, shift
 * Plain, the shift is followed by that to the left before the multiplication, one more than the factor wants, and by -1, or 0 where
 * nothing is shifted to the right. */
#ifndef TINYET_ROW_DSP_H
#define TINYET_ROW_DSP_H

#include "tinyet_tile_dsp.h"

typedef struct {
  int32_t pairs;
  tinyet_rounding_dsp rounding;
} tinyet_row_shape_dsp;

/* The output of a sum. */
TINYET_DSP_INLINE int8_t tinyet_row_output_dsp(int32_t sum, const int32_t *ends, const tinyet_rounding_dsp rounding) {
  if (rounding.form != TINYET_DSP_PLAIN) {
    return tinyet_round_dsp(sum, ends[0], ends[1], ends[2], rounding);
  }
  const int32_t lifted = tinyet_shift_left(sum, ends[3]);
  const int32_t value = tinyet_smmlar_dsp(lifted, ends[0], ends[1] + ((lifted >> 31) & ends[4])) >> ends[2];
  return (int8_t)tinyet_clamp(value, rounding.low, rounding.high);
}

TINYET_DSP_INLINE void tinyet_row_dsp(const int32_t *weights, const uint32_t *inputs, int8_t *output, const int8_t *end,
                                      const tinyet_row_shape_dsp row) {
  const int32_t words = row.rounding.form == TINYET_DSP_PLAIN ? 5 : 3;
  while (output != end) {
    const int32_t *const ends = weights + 4 + 2 * row.pairs;
    for (int32_t k = 0; k < 4; k++) {
      int32_t sum = weights[k];
      for (int32_t pair = 0; pair < row.pairs; pair++) {
        const uint32_t word = (uint32_t)weights[4 + 2 * pair + k / 2];
        sum = tinyet_smlad_dsp(k % 2 == 0 ? tinyet_even_bytes_dsp(word) : tinyet_odd_bytes_dsp(word), inputs[pair], sum);
      }
      *output++ = tinyet_row_output_dsp(sum, ends + words * k, row.rounding);
    }
    weights = ends + 4 * words;
  }
}

#endif
