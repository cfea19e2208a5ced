/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM whose cell has bounds of its own. The file that includes this has defined
 *
 *   KERNEL                the function's name
 *   PARAMS                the type of its parameters, with cell_low and cell_high
 *   LAYER                 in these, what has shape, x, h, cell_bits, multiplier and form
 *   VALUE, LOW, HIGH      the type of input and state, and its bounds
 *   ZERO_POINT            of the state
 *   SUMS(values, part, units, sums)   adds the sums of a part of four gates
 *   SIGMOID(values, count), TANH(values, count, bits)   the functions of the gates, of each value
 *   SHORTENED(product, bits)          a product of gates over 2^bits */
#ifndef TINYET_LSTM_CLIPPED_BODY_H
#define TINYET_LSTM_CLIPPED_BODY_H

#include "tinyet_lstm.h"

void KERNEL(const VALUE *x, const VALUE *h, const int16_t *c, VALUE *y, VALUE *h_n, int16_t *c_n, void *scratch,
            const PARAMS *params) {
  const tinyet_recurrent_shape *const s = &LAYER.shape;
  const int32_t units = s->units, rows = (units + 3) & ~INT32_C(3), cell_bits = LAYER.cell_bits;
  int16_t *const gates = (int16_t *)scratch;
  memcpy(c_n, c, (size_t)(s->batch * units) * sizeof *c);
  for (int32_t n = 0; n < s->batch; n++) {
    const VALUE *in = x + s->x_first, *state = h;
    VALUE *out = y + s->y_first;
    for (int32_t t = s->steps; t != 0; t--) {
      memset(gates, 0, (size_t)(4 * rows) * sizeof *gates);
      SUMS(in, &LAYER.x, rows, gates);
      SUMS(state, &LAYER.h, rows, gates);
      SIGMOID(gates, 2 * rows);
      TANH(gates + 2 * rows, rows, 3);
      SIGMOID(gates + 3 * rows, rows);
      for (int32_t i = 0; i < units; i++) {
        int16_t *const gate = gates + i;
        const int32_t kept = SHORTENED((int32_t)gate[rows] * c_n[i], 15);
        const int32_t added = SHORTENED((int32_t)gate[0] * gate[2 * rows], 15 + cell_bits);
        gate[0] = c_n[i] = (int16_t)tinyet_clamp(kept + added, params->cell_low, params->cell_high);
      }
      TANH(gates, units, cell_bits);
      for (int32_t i = 0; i < units; i++) {
        const int32_t through = (int32_t)gates[3 * rows + i] * gates[i];
        const int32_t value = tinyet_requantize_form(through, LAYER.multiplier, LAYER.form, ZERO_POINT);
        out[i] = (VALUE)tinyet_clamp(value, LOW, HIGH);
      }
      state = out;
      in += s->x_step;
      out += s->y_step;
    }
    if (y != h_n) {
      memcpy(h_n, state, (size_t)units * sizeof *h_n);
    }
    x += s->steps * s->inputs;
    h += units;
    y += s->y_batch;
    h_n += units;
    c_n += units;
  }
}

#endif
