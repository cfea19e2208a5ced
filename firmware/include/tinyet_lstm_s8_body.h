/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM with and without a projection. The file that includes this has defined
 *
 *   KERNEL             the function's name
 *   PARAMS             the type of its parameters
 *   LAYER              the tinyet_lstm_s8_params in these
 *   HIDDEN             where what the output gate lets through goes, be it the state itself, `out`, or behind the `gates`
 *   PROJECT            makes the state of it
 *   SUMS(values, part, gates, units, sums, rest)   adds the sums of a part; rest: scratch memory behind the gates */
#ifndef TINYET_LSTM_S8_BODY_H
#define TINYET_LSTM_S8_BODY_H

#include "tinyet_gates.h"
#include "tinyet_lstm.h"

void KERNEL(const int8_t *x, const int8_t *h, const int16_t *c, int8_t *y, int8_t *h_n, int16_t *c_n, void *scratch,
          const PARAMS *params) {
  const tinyet_lstm_s8_params *const layer = LAYER;
  const tinyet_recurrent_shape *const s = &layer->shape;
  const int32_t units = s->units, rows = (units + 3) & ~INT32_C(3);
  int16_t *const gates = (int16_t *)scratch;
  memcpy(c_n, c, (size_t)(s->batch * units) * sizeof *c);
  for (int32_t n = 0; n < s->batch; n++) {
    const int8_t *in = x + s->x_first, *state = h;
    int8_t *out = y + s->y_first;
    for (int32_t t = s->steps; t != 0; t--) {
      int8_t *const hidden = HIDDEN;
      memset(gates, 0, (size_t)(4 * rows) * sizeof *gates);
      SUMS(in, &layer->x, 4, rows, gates, gates + 4 * rows);
      SUMS(state, &layer->h, 4, rows, gates, gates + 4 * rows);
      for (int32_t i = 0; i < units; i++) {
        const int16_t *const gate = gates + i;
        const int32_t kept = tinyet_round_shift(tinyet_gate_sigmoid(gate[rows]) * c_n[i], 15);
        const int32_t added = tinyet_gate_sigmoid(gate[0]) * tinyet_gate_tanh(gate[2 * rows], 3);
        const int32_t cell = kept + tinyet_round_shift(added, 15 + layer->cell_bits);
        c_n[i] = (int16_t)tinyet_gate_saturate(cell);
        const int32_t through = tinyet_gate_sigmoid(gate[3 * rows]) * tinyet_gate_tanh(c_n[i], layer->cell_bits);
        const int32_t value = tinyet_requantize_form(through, layer->multiplier, layer->form, layer->zero_point);
        hidden[i] = (int8_t)tinyet_clamp(value, INT8_MIN, INT8_MAX);
      }
      PROJECT;
      state = out;
      in += s->x_step;
      out += s->y_step;
    }
    if (y != h_n) {
      memcpy(h_n, state, (size_t)s->outputs);
    }
    x += s->steps * s->inputs;
    h += s->outputs;
    y += s->y_batch;
    h_n += s->outputs;
    c_n += units;
  }
}

#endif
