/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_winograd_dsp.h"

TINYET_DSP_INLINE uint32_t tinyet_twice_int16x2_dsp(uint32_t pair) {
  return tinyet_add_int16x2_dsp(pair, pair);
}

/* Three weights in a row or column, of a pair of channels. */
TINYET_DSP_INLINE void tinyet_winograd_f4x4_weights_dsp(uint32_t *to, const int32_t step, uint32_t g0, uint32_t g1,
                                                        uint32_t g2) {
  const uint32_t g1_2 = tinyet_twice_int16x2_dsp(g1), g1_4 = tinyet_twice_int16x2_dsp(g1_2);
  const uint32_t ends = tinyet_subtract_int16x2_dsp(0, tinyet_add_int16x2_dsp(g0, g2));
  const uint32_t ends_4 = tinyet_twice_int16x2_dsp(tinyet_twice_int16x2_dsp(ends));
  const uint32_t g2_4 = tinyet_twice_int16x2_dsp(tinyet_twice_int16x2_dsp(g2)), sum = tinyet_add_int16x2_dsp(g0, g2_4);
  to[0] = tinyet_twice_int16x2_dsp(tinyet_add_int16x2_dsp(g0, tinyet_twice_int16x2_dsp(g0)));
  to[step] = tinyet_subtract_int16x2_dsp(ends_4, g1_4);
  to[2 * step] = tinyet_add_int16x2_dsp(ends_4, g1_4);
  to[3 * step] = tinyet_add_int16x2_dsp(sum, g1_2);
  to[4 * step] = tinyet_subtract_int16x2_dsp(sum, g1_2);
  to[5 * step] = tinyet_twice_int16x2_dsp(g2_4);
}

/* The same of one channel, modulo 2^32. */
TINYET_DSP_INLINE void tinyet_winograd_f4x4_sum_dsp(uint32_t *to, const int32_t step, uint32_t g0, uint32_t g1,
                                                    uint32_t g2) {
  const uint32_t ends = g0 + g2, sum = g0 + (g2 << 2);
  to[0] = 6 * g0;
  to[step] = 0 - ((ends + g1) << 2);
  to[2 * step] = (g1 - ends) << 2;
  to[3 * step] = sum + (g1 << 1);
  to[4 * step] = sum - (g1 << 1);
  to[5 * step] = g2 << 3;
}

/* Nine weights of a pair of input channels into all positions, `step` words apart. */
TINYET_DSP_INLINE void tinyet_winograd_f4x4_kernel_dsp(uint32_t *to, const int32_t step, const uint32_t *taps) {
  uint32_t rows[18];
#pragma GCC unroll 3
  for (int32_t x = 0; x < 3; x++) {
    tinyet_winograd_f4x4_weights_dsp(rows + x, 3, taps[x], taps[3 + x], taps[6 + x]);
  }
  for (int32_t y = 0; y < 6; y++) {
    tinyet_winograd_f4x4_weights_dsp(to + 6 * y * step, step, rows[3 * y], rows[3 * y + 1], rows[3 * y + 2]);
  }
}

/* What sums begin with: it takes away the lift of lower halves. taps: the sum of the weights of all pairs; that of a lower
 * half is in int16, for there are at most 252 of them. bias: at position (1, 1). */
TINYET_DSP_INLINE void tinyet_winograd_f4x4_starts_dsp(uint32_t *to, const int32_t step, const uint32_t *taps,
                                                       uint32_t bias) {
  uint32_t rows[18], starts[36];
  for (int32_t x = 0; x < 3; x++) {
    tinyet_winograd_f4x4_sum_dsp(rows + x, 3, (uint32_t)(int16_t)taps[x], (uint32_t)(int16_t)taps[3 + x],
                                 (uint32_t)(int16_t)taps[6 + x]);
  }
  for (int32_t y = 0; y < 6; y++) {
    tinyet_winograd_f4x4_sum_dsp(starts + 6 * y, 1, rows[3 * y], rows[3 * y + 1], rows[3 * y + 2]);
  }
  for (int32_t position = 0; position < 36; position++) {
    to[position * step] = 0 - TINYET_DSP_LIFT * starts[position];
  }
  to[7 * step] += bias;
}

const int32_t *tinyet_winograd_f4x4_stream_dsp(uint32_t *to, const int32_t *from, int32_t count, int32_t pairs) {
  const int32_t step = 2 + 2 * pairs;
  for (int32_t channel = 0; channel < count; channel += 2, to += 36 * step + 8) {
    const int32_t *const head = from, *const taps_of = from + 10;
    for (int32_t which = 0; which < 2; which++) {
      uint32_t sums[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0};
      uint32_t *at = to + 2 + which;
      from = taps_of;
      for (int32_t pair = 0; pair < pairs; pair++, from += 9, at += 2) {
        uint32_t taps[9];
#pragma GCC unroll 9
        for (int32_t tap = 0; tap < 9; tap++) {
          taps[tap] = tinyet_even_bytes_dsp((uint32_t)from[tap] >> (8 * which));
          sums[tap] = tinyet_add_int16x2_dsp(sums[tap], taps[tap]);
        }
        tinyet_winograd_f4x4_kernel_dsp(at, step, taps);
      }
      tinyet_winograd_f4x4_starts_dsp(to + which, step, sums, (uint32_t)head[which]);
    }
    memcpy(to + 36 * step, head + 2, 32);
  }
  return from;
}
