/* SPDX-License-Identifier: Apache-2.0 */
/* Plain recurrent units in int8. The file that includes this has defined
 *
 *   KERNEL   the function's name
 *   SUMS(which, values, part, gates, units, sums, rest)   adds the sums of a part, x or h; rest: scratch memory behind the sums
 *   FUNCTIONS   more parameters of the function; nothing where it is not defined */
#ifndef TINYET_RNN_S8_BODY_H
#define TINYET_RNN_S8_BODY_H

#include "tinyet_gates.h"
#include "tinyet_rnn.h"

/* The state behind a step, of what its sums come to. */
static inline void tinyet_rnn_state(const int16_t *values, int8_t *out, int32_t units, const tinyet_rnn_s8_params *params) {
#if defined(__AVR__)
  tinyet_gate_bytes(values, out, TINYET_EXTENT(units), params->multiplier, params->form, (int16_t)params->zero_point,
                    params->relu != 0 ? 1u : 0u);
#else
  for (int32_t i = 0; i < units; i++) {
    const int32_t result = params->relu != 0 && values[i] < 0 ? 0 : values[i];
    const int32_t value = tinyet_requantize_form(result, params->multiplier, params->form, params->zero_point);
    out[i] = (int8_t)tinyet_clamp(value, INT8_MIN, INT8_MAX);
  }
#endif
}

#define PARAMS tinyet_rnn_s8_params
#define VALUE int8_t
#define STEP(in, state, out)                                         \
  memset(sums, 0, (size_t)rows * sizeof *sums);                      \
  SUMS(x, in, &params->x, 1, rows, sums, sums + rows);               \
  SUMS(h, state, &params->h, 1, rows, sums, sums + rows);            \
  if (params->relu == 0) {                                           \
    tinyet_gate_tanh(sums, units, 3);                                \
  }                                                                  \
  tinyet_rnn_state(sums, out, units, params)
#include "tinyet_recurrent_steps_body.h"

#endif
