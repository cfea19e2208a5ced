/* SPDX-License-Identifier: Apache-2.0 */
/* The sums that the gates of recurrent layers are made of, for cores with DSP instructions: weights of int16, so that nothing
 * is widened but the input, once a step. */
#ifndef TINYET_DSP_GATES_H
#define TINYET_DSP_GATES_H

#include "tinyet_dsp.h"
#include "tinyet_gates.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pairs (0, 2) and (1, 3) of each four values; zeros for those that are missing. */
static inline void tinyet_dsp_widen(const int8_t *values, int32_t count, uint32_t *pairs) {
  for (; count > 0; count -= 4) {
    uint32_t word = 0;
    if (count >= 4) {
      memcpy(&word, values, 4);
    } else {
      memcpy(&word, values, (size_t)count);
    }
    pairs[0] = tinyet_dsp_even(word);
    pairs[1] = tinyet_dsp_odd(word);
    pairs += 2;
    values += 4;
  }
}

/* Adds four values of four rows each to the sums, `fours` times, one at least; gives the weights behind them. */
TINYET_DSP_INLINE const int8_t *tinyet_dsp_four_rows(const uint32_t *pairs, const int8_t *weights, int32_t fours,
                                                     int32_t sums[4]) {
  int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
#if TINYET_DSP_ASM
#define TINYET_DSP_FOUR_ROWS_PAIR       \
  "ldr %[x], [%[pairs]], #4\n"           \
  "ldrd %[v], %[u], [%[w]], #8\n"        \
  "smlad %[a], %[v], %[x], %[a]\n"       \
  "smlad %[b], %[u], %[x], %[b]\n"       \
  "ldrd %[v], %[u], [%[w]], #8\n"        \
  "smlad %[c], %[v], %[x], %[c]\n"       \
  "smlad %[d], %[u], %[x], %[d]\n"
  uint32_t x, u, v;
  __asm__ volatile("1:\n" TINYET_DSP_FOUR_ROWS_PAIR TINYET_DSP_FOUR_ROWS_PAIR "subs %[fours], %[fours], #1\n"
                   "bne 1b\n"
                   : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [w] "+r"(weights), [pairs] "+r"(pairs),
                     [fours] "+r"(fours), [x] "=&r"(x), [u] "=&r"(u), [v] "=&r"(v)
                   :
                   : "memory", "cc");
#undef TINYET_DSP_FOUR_ROWS_PAIR
#else
  for (; fours != 0; fours--) {
    for (int32_t pair = 0; pair < 2; pair++) {
      const uint32_t values = *pairs++;
      a = tinyet_dsp_smlad(tinyet_load4(weights), values, a);
      b = tinyet_dsp_smlad(tinyet_load4(weights + 4), values, b);
      c = tinyet_dsp_smlad(tinyet_load4(weights + 8), values, c);
      d = tinyet_dsp_smlad(tinyet_load4(weights + 12), values, d);
      weights += 16;
    }
  }
#endif
  sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
  return weights;
}

/* tinyet_gate_sums of weights of int16: for each four values, words of (0, 2) of four rows, then of (1, 3). wide: for as many
 * int16 as the input has values, rounded up to fours. */
static __attribute__((noinline, unused)) void tinyet_dsp_gate_sums(const int8_t *input, const tinyet_gate_part_s8 *part,
                                                                   int32_t gates, int32_t units, int16_t *sums,
                                                                   uint32_t *wide) {
  const int32_t fours = (part->depth + 3) / 4;
  const int8_t *w = part->weights;
  const int32_t *bias = part->bias;
  tinyet_dsp_widen(input, part->depth, wide);
  for (int32_t gate = 0; gate < gates; gate++) {
    const int32_t multiplier = part->multiplier[gate], form = part->form[gate];
    for (int32_t n = units; n != 0; n -= 4) {
      int32_t rows[4] = {bias[0], bias[1], bias[2], bias[3]};
      w = tinyet_dsp_four_rows(wide, w, fours, rows);
      bias += 4;
      for (int32_t i = 0; i < 4; i++) {
        rows[i] = tinyet_requantize_form(rows[i], multiplier, form, 0);
      }
      sums[0] = (int16_t)tinyet_gate_saturate(sums[0] + rows[0]);
      sums[1] = (int16_t)tinyet_gate_saturate(sums[1] + rows[1]);
      sums[2] = (int16_t)tinyet_gate_saturate(sums[2] + rows[2]);
      sums[3] = (int16_t)tinyet_gate_saturate(sums[3] + rows[3]);
      sums += 4;
    }
  }
}

#ifdef __cplusplus
}
#endif

#endif
