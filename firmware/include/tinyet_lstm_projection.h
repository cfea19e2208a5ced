/* SPDX-License-Identifier: Apache-2.0 */
/* What makes the state of an LSTM with a projection. */
#ifndef TINYET_LSTM_PROJECTION_H
#define TINYET_LSTM_PROJECTION_H

#include "tinyet_gates.h"
#include "tinyet_lstm.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline void tinyet_lstm_project(const int8_t *hidden, int8_t *out,
                                       const tinyet_lstm_projected_s8_params *params) {
  const tinyet_gate_part_s8 *const part = &params->projection;
  const int32_t blocks = part->depth / 4, rest = part->depth & 3, count = params->layer.shape.outputs;
  const TINYET_ROM int8_t *w = part->weights;
  for (int32_t n = 0; n < count; n += 4) {
    const TINYET_ROM int32_t *const bias = part->bias + n;
    int32_t rows[4] = {bias[0], bias[1], bias[2], bias[3]};
    w = tinyet_dot_1x4(hidden, w, blocks, rest, rows);
    w += rest != 0 ? 16 - rest : 0;
    const int32_t end = count - n < 4 ? count - n : 4;
    for (int32_t i = 0; i < end; i++) {
      const int32_t value = tinyet_requantize_form(rows[i], part->multiplier[0], part->form[0], params->zero_point);
      *out++ = (int8_t)tinyet_clamp(value, INT8_MIN, INT8_MAX);
    }
  }
}

#ifdef __cplusplus
}
#endif

#endif
