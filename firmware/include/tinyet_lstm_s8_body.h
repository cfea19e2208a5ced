/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM with and without a projection. The file that includes this has defined
 *
 *   KERNEL             the function's name
 *   PARAMS             the type of its parameters
 *   LAYER              the tinyet_lstm_s8_params in these
 *   HIDDEN             where what the output gate lets through goes, be it the state itself, `out`, or behind the `gates`
 *   PROJECT            makes the state of it
 *   SUMS(which, values, part, gates, units, sums, rest)   adds the sums of a part, x or h; rest: scratch memory behind the gates
 *   FIRST_SUMS                                            the same to none; where it is not defined, SUMS to zeros
 *   FUNCTIONS          more parameters of the function; nothing where it is not defined */
#ifndef TINYET_LSTM_S8_BODY_H
#define TINYET_LSTM_S8_BODY_H

#include "tinyet_lstm_hidden.h"

#if !defined(FIRST_SUMS)
#define FIRST_SUMS(which, values, part, gates, units, sums, rest) \
  memset(sums, 0, (size_t)((gates) * (units)) * sizeof *sums);    \
  SUMS(which, values, part, gates, units, sums, rest)
#endif
#if !defined(FUNCTIONS)
#define FUNCTIONS
#endif

/* The cells behind a step, and a copy of them in the place of the first gate. */
static inline void tinyet_lstm_cells(int16_t *gates, int32_t rows, int16_t *cells, int32_t units, int32_t cell_bits) {
#if !defined(__AVR__)
  int32_t i = 0;
#endif
#if TINYET_GATE_MVE
  i = units & ~INT32_C(1);
  if (i != 0) {
    tinyet_lstm_cells_mve(gates, rows, cells, i, cell_bits);
  }
#endif
#if defined(__AVR__)
  tinyet_gate_cells(gates, TINYET_EXTENT(rows), cells, TINYET_EXTENT(units), (uint8_t)cell_bits);
#else
  for (; i < units; i++) {
    int16_t *const gate = gates + i;
    const int32_t kept = tinyet_gate_product(gate[rows], cells[i]);
    const int32_t cell = kept + tinyet_gate_shift((int32_t)gate[0] * gate[2 * rows], 15 + cell_bits);
    gate[0] = cells[i] = (int16_t)tinyet_gate_saturate(cell);
  }
#endif
}

void KERNEL(const int8_t *x, const int8_t *h, const int16_t *c, int8_t *y, int8_t *h_n, int16_t *c_n, void *scratch,
          const PARAMS *params FUNCTIONS) {
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
      FIRST_SUMS(x, in, &layer->x, 4, rows, gates, gates + 4 * rows);
      SUMS(h, state, &layer->h, 4, rows, gates, gates + 4 * rows);
      tinyet_gate_sigmoid(gates, 2 * rows);
      tinyet_gate_tanh(gates + 2 * rows, rows, 3);
      tinyet_gate_sigmoid(gates + 3 * rows, rows);
      tinyet_lstm_cells(gates, rows, c_n, units, layer->cell_bits);
      tinyet_gate_tanh(gates, units, layer->cell_bits);
      tinyet_lstm_hidden(gates + 3 * rows, gates, hidden, units, layer);
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
