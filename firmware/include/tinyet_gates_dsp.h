/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions that tinyet/tiles prints for recurrent layers compute, in C: the sums of a part of the gates, four rows at a
 * time.
 *
 * The inputs are pairs of int16, (0, 2) and (1, 3) of each four; behind them is twice the sum of all products of 0 and 1, of 2
 * and 3. The weight stream is that of crossed weights (tinyet_tile_dsp.h), of four rows: bias of each, then the weights. */
#ifndef TINYET_GATES_DSP_H
#define TINYET_GATES_DSP_H

#include "tinyet_tile_dsp.h"

/* Of a gate. A sum is shifted to the left by `before`, multiplied, rounded and shifted to the right. */
typedef struct {
  int32_t multiplier, offset, shift;
  int16_t *end;         /* of its sums */
  int32_t before, mask; /* mask: -1 where sums below zero are one less in front of the shift to the right, else 0 */
} tinyet_gate_scaling_dsp;

typedef struct {
  const uint32_t *inputs_end;
  int16_t *end; /* of the sums of all gates */
  tinyet_gate_scaling_dsp gates[4];
} tinyet_gates_dsp;

/* A printed function: adds to the sums of all gates. */
typedef void (*tinyet_gates_function_dsp)(const int32_t *weights, const uint32_t *inputs, int16_t *sums,
                                          const tinyet_gates_dsp *gates);

/* apart: what is added is saturated before, too. */
TINYET_DSP_INLINE void tinyet_gate_rows_dsp(const int32_t *weights, const uint32_t *inputs, int16_t *sums,
                                            const tinyet_gates_dsp *gates, const int32_t apart) {
  const int32_t pairs = (int32_t)(gates->inputs_end - inputs), rest = (int32_t)inputs[pairs] >> 1;
  const tinyet_tile_shape_dsp shape = {1, 4, /* packed */ 1, /* crossed */ 1, /* alike */ 0, pairs, 0,
                                       {TINYET_DSP_TWO_SIDED, 0, -128, 127}};
  for (const tinyet_gate_scaling_dsp *gate = gates->gates; sums != gates->end; gate++) {
    for (; sums != gate->end; sums += 4, weights += 4 + 2 * pairs) {
      int32_t even = 0;
      for (int32_t row = 0; row < 4; row++) {
        int32_t sum = tinyet_tile_sum_dsp(weights, inputs, row, 0, shape);
        if (row % 2 == 0) {
          sum = even = (int32_t)((uint32_t)sum - (uint32_t)rest);
        } else {
          sum = (int32_t)((uint32_t)sum - (uint32_t)even) >> 8;
        }
        sum = tinyet_shift_left(sum, gate->before);
        sum = tinyet_smmlar_dsp(sum, gate->multiplier, gate->offset + ((sum >> 31) & gate->mask)) >> gate->shift;
        sum = apart ? tinyet_clamp(sum, INT16_MIN, INT16_MAX) : sum;
        sums[row] = (int16_t)tinyet_clamp(sums[row] + sum, INT16_MIN, INT16_MAX);
      }
    }
  }
}

#endif
