/* SPDX-License-Identifier: Apache-2.0 */
/* How an LSTM's output gate lets the cells through. */
#ifndef TINYET_LSTM_HIDDEN_H
#define TINYET_LSTM_HIDDEN_H

#include "tinyet_gates.h"
#include "tinyet_lstm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the output gate lets through of the cells' tanh. */
static inline void tinyet_lstm_hidden(const int16_t *out, const int16_t *cells, int8_t *hidden, int32_t units,
                                      const tinyet_lstm_s8_params *layer) {
  const int32_t multiplier = layer->multiplier, form = layer->form, zero_point = layer->zero_point;
#if defined(__AVR__)
  tinyet_gate_hidden(out, cells, hidden, TINYET_EXTENT(units), multiplier, form, (int16_t)zero_point);
#else
  int32_t i = 0;
#if TINYET_GATE_MVE
  if (form >= 0 && units > 1) {
    i = units & ~INT32_C(1);
    tinyet_lstm_hidden_mve(out, cells, hidden, i, multiplier, form, zero_point);
  }
#endif
  for (; form >= 0 && i < units; i++) {
    const int32_t value = tinyet_gate_requantize((int32_t)out[i] * cells[i], multiplier, form);
    hidden[i] = tinyet_gate_byte(value + zero_point);
  }
  for (; i < units; i++) {
    const int32_t value = tinyet_requantize_any((int32_t)out[i] * cells[i], multiplier, form + 31);
    hidden[i] = tinyet_gate_byte(value + zero_point);
  }
#endif
}

/* The same in int16. */
static inline void tinyet_lstm_hidden_s16(const int16_t *out, const int16_t *cells, int16_t *hidden, int32_t units,
                                          int32_t multiplier, int32_t form) {
  int32_t i = 0;
#if TINYET_GATE_MVE
  for (; form >= 0 && i < units; i += 8) {
    const mve_pred16_t there = vctp16q((uint32_t)(units - i));
    const int16x8_t gate = vldrhq_z_s16(out + i, there), cell = vldrhq_z_s16(cells + i, there);
    const int32x4_t even = tinyet_requantize_mve(vmullbq_int_s16(gate, cell), multiplier, form, 0);
    const int32x4_t odd = tinyet_requantize_mve(vmulltq_int_s16(gate, cell), multiplier, form, 0);
    vstrhq_p_s16(hidden + i, tinyet_joined_mve(even, odd), there);
  }
#endif
  for (; i < units; i++) {
    const int32_t value = tinyet_requantize_form((int32_t)out[i] * cells[i], multiplier, form, 0);
    hidden[i] = (int16_t)tinyet_clamp(value, INT16_MIN, INT16_MAX);
  }
}

#ifdef __cplusplus
}
#endif

#endif
