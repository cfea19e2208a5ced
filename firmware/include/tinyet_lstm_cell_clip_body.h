/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM whose cell has bounds of its own. The file that includes this has defined
 *
 *   KERNEL                the function's name
 *   PARAMS                the type of its parameters, with cell_low and cell_high
 *   LAYER                 in these, what has shape, x, h, cell_bits, multiplier and form
 *   VALUE                 the type of input and state
 *   SUMS(which, values, part, units, sums, rest)   adds the sums of a part of four gates, x or h; rest: scratch memory behind
 *                                                  the gates
 *   FUNCTIONS             more parameters of the function; nothing where it is not defined
 *   SIGMOID(values, count), TANH(values, count, bits)   the functions of the gates, of each value
 *   TWICE                             1 where products of gates are rounded as tinyet_shortened does it, else 0
 *   HIDDEN(gate, cells, out, units)   what a gate lets through of the cells' tanh */
#ifndef TINYET_LSTM_CELL_CLIP_BODY_H
#define TINYET_LSTM_CELL_CLIP_BODY_H

#include "tinyet_gates.h"
#include "tinyet_gates_lut.h"
#include "tinyet_lstm.h"

#if !defined(FUNCTIONS)
#define FUNCTIONS
#endif

/* The cells behind a step, and a copy of them in the place of the first gate. */
static inline void tinyet_lstm_clip_cells(int16_t *gates, int32_t rows, int16_t *cells, int32_t units, int32_t cell_bits,
                                          int32_t low, int32_t high) {
#if TINYET_GATE_MVE
#if TWICE
#define TINYET_LSTM_SHORTENED(product, bits) tinyet_shortened_mve(product, bits)
#else
#define TINYET_LSTM_SHORTENED(product, bits) tinyet_rounded_mve(product, bits)
#endif
  for (int32_t i = 0; i < units; i += 8) {
    const mve_pred16_t there = vctp16q((uint32_t)(units - i));
    const int16x8_t in = vldrhq_z_s16(gates + i, there), forget = vldrhq_z_s16(gates + rows + i, there);
    const int16x8_t fresh = vldrhq_z_s16(gates + 2 * rows + i, there), cell = vldrhq_z_s16(cells + i, there);
    int32x4_t even = TINYET_LSTM_SHORTENED(vmullbq_int_s16(forget, cell), 15);
    int32x4_t odd = TINYET_LSTM_SHORTENED(vmulltq_int_s16(forget, cell), 15);
    even = vaddq_s32(even, TINYET_LSTM_SHORTENED(vmullbq_int_s16(in, fresh), 15 + cell_bits));
    odd = vaddq_s32(odd, TINYET_LSTM_SHORTENED(vmulltq_int_s16(in, fresh), 15 + cell_bits));
    const int16x8_t sum = vminq_s16(tinyet_joined_mve(even, odd), vdupq_n_s16((int16_t)high));
    const int16x8_t bounded = vmaxq_s16(sum, vdupq_n_s16((int16_t)low));
    vstrhq_p_s16(cells + i, bounded, there);
    vstrhq_p_s16(gates + i, bounded, there);
  }
#else
#if TWICE
#define TINYET_LSTM_SHORTENED(product, bits) tinyet_shortened(product, bits)
#else
#define TINYET_LSTM_SHORTENED(product, bits) tinyet_gate_shift(product, bits)
#endif
  for (int32_t i = 0; i < units; i++) {
    int16_t *const gate = gates + i;
    const int32_t kept = TINYET_LSTM_SHORTENED((int32_t)gate[rows] * cells[i], 15);
    const int32_t added = TINYET_LSTM_SHORTENED((int32_t)gate[0] * gate[2 * rows], 15 + cell_bits);
    gate[0] = cells[i] = (int16_t)tinyet_clamp(kept + added, low, high);
  }
#endif
#undef TINYET_LSTM_SHORTENED
}

void KERNEL(const VALUE *x, const VALUE *h, const int16_t *c, VALUE *y, VALUE *h_n, int16_t *c_n, void *scratch,
            const PARAMS *params FUNCTIONS) {
  const tinyet_recurrent_shape *const s = &LAYER.shape;
  const int32_t units = s->units, rows = (units + 3) & ~INT32_C(3), cell_bits = LAYER.cell_bits;
  int16_t *const gates = (int16_t *)scratch;
  memcpy(c_n, c, (size_t)(s->batch * units) * sizeof *c);
  for (int32_t n = 0; n < s->batch; n++) {
    const VALUE *in = x + s->x_first, *state = h;
    VALUE *out = y + s->y_first;
    for (int32_t t = s->steps; t != 0; t--) {
      memset(gates, 0, (size_t)(4 * rows) * sizeof *gates);
      SUMS(x, in, &LAYER.x, rows, gates, gates + 4 * rows);
      SUMS(h, state, &LAYER.h, rows, gates, gates + 4 * rows);
      SIGMOID(gates, 2 * rows);
      TANH(gates + 2 * rows, rows, 3);
      SIGMOID(gates + 3 * rows, rows);
      tinyet_lstm_clip_cells(gates, rows, c_n, units, cell_bits, params->cell_low, params->cell_high);
      TANH(gates, units, cell_bits);
      HIDDEN(gates + 3 * rows, gates, out, units);
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
