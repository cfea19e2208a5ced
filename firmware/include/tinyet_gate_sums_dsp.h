/* SPDX-License-Identifier: Apache-2.0 */
/* The sums that the gates of recurrent layers are made of, for cores with DSP instructions: what is around a printed function
 * (tinyet_gates_dsp.h). */
#ifndef TINYET_GATE_SUMS_DSP_H
#define TINYET_GATE_SUMS_DSP_H

#include "tinyet_gates_dsp.h"
#include "tinyet_recurrent.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pairs (0, 2) and (1, 3) of each four values, zeros for those that are missing; behind them twice the sum of the products of 0
 * and 1, of 2 and 3. Gives where that is. */
static inline uint32_t *tinyet_cross_inputs_dsp(const int8_t *values, int32_t count, uint32_t *pairs) {
  int32_t products = 0;
  for (; count > 0; count -= 4) {
    uint32_t word = 0;
    if (count >= 4) {
      memcpy(&word, values, 4);
    } else {
      memcpy(&word, values, (size_t)count);
    }
    pairs[0] = tinyet_even_bytes_dsp(word);
    pairs[1] = tinyet_odd_bytes_dsp(word);
    products = tinyet_smlad_dsp(pairs[0], pairs[1], products);
    pairs += 2;
    values += 4;
  }
  *pairs = (uint32_t)products << 1;
  return pairs;
}

/* tinyet_gate_sums of a part whose weights are a stream at `bias`, by a function that is printed for it; forms below 0 shift to
 * the left. pairs: for as many int16 as the input has values, rounded up to fours, and a word. */
static __attribute__((noinline, unused)) void tinyet_gate_sums_dsp(const int8_t *input, const tinyet_gate_part_s8 *part,
                                                                   int32_t gates, int32_t units, int16_t *sums,
                                                                   uint32_t *pairs, tinyet_gates_function_dsp rows) {
  tinyet_gates_dsp all;
  all.inputs_end = tinyet_cross_inputs_dsp(input, part->depth, pairs);
  all.end = sums + gates * units;
  int16_t *end = sums;
  for (int32_t i = 0; i < gates; i++) {
    tinyet_gate_scaling_dsp *const gate = &all.gates[i];
    const int32_t form = part->form[i], left = form < 0;
    end += units;
    gate->multiplier = part->multiplier[i];
    gate->offset = left ? 0 : INT32_C(1) << form;
    gate->shift = left ? 0 : form + 1;
    gate->end = end;
    gate->before = left ? form + 32 : 1;
    gate->mask = left ? 0 : -1;
  }
  rows(part->bias, pairs, sums, &all);
}

#ifdef __cplusplus
}
#endif

#endif
