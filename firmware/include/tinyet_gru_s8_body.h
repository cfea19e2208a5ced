/* SPDX-License-Identifier: Apache-2.0 */
/* Gated recurrent units in int8. The file that includes this has defined
 *
 *   KERNEL   the function's name
 *   SUMS(values, part, gates, units, sums, rest)   adds the sums of a part; rest: scratch memory behind the sums */
#ifndef TINYET_GRU_S8_BODY_H
#define TINYET_GRU_S8_BODY_H

#include "tinyet_gru.h"

void KERNEL(const int8_t *x, const int8_t *h, int8_t *y, int8_t *h_n, void *scratch,
                   const tinyet_gru_s8_params *params) {
  const tinyet_recurrent_shape *const s = &params->shape;
  const int32_t units = s->units, rows = (units + 3) & ~INT32_C(3), zero_point = params->zero_point;
  int16_t *const sums = (int16_t *)scratch;
  for (int32_t n = 0; n < s->batch; n++) {
    const int8_t *in = x + s->x_first, *state = h;
    int8_t *out = y + s->y_first;
    for (int32_t t = s->steps; t != 0; t--) {
      memset(sums, 0, (size_t)(4 * rows) * sizeof *sums);
      SUMS(in, &params->x, 3, rows, sums, sums + 4 * rows);
      SUMS(state, &params->h, 3, rows, sums + rows, sums + 4 * rows);
      for (int32_t i = 0; i < units; i++) {
        const int16_t *const gate = sums + i;
        const int32_t inner = tinyet_round_shift(tinyet_gate_sigmoid(gate[rows]) * gate[3 * rows], 15);
        const int32_t candidate = tinyet_gate_tanh(tinyet_gate_saturate(gate[0] + inner), 3);
        const int32_t update = tinyet_gate_sigmoid(gate[2 * rows]);
        const int32_t new_part =
            tinyet_requantize_form((32768 - update) * candidate, params->multiplier, params->form, 0);
        const int32_t kept = update * (state[i] - zero_point);
        const int32_t value = ((new_part + kept + (INT32_C(1) << 14)) >> 15) + zero_point;
        out[i] = (int8_t)tinyet_clamp(value, INT8_MIN, INT8_MAX);
      }
      state = out;
      in += s->x_step;
      out += s->y_step;
    }
    if (y != h_n) {
      memcpy(h_n, state, (size_t)units);
    }
    x += s->steps * s->inputs;
    h += units;
    y += s->y_batch;
    h_n += units;
  }
}

#endif
