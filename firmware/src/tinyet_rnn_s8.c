/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_rnn.h"

#include "tinyet_gates.h"

void tinyet_rnn_s8(const int8_t *x, const int8_t *h, int8_t *y, int8_t *h_n, void *scratch,
                   const tinyet_rnn_s8_params *params) {
  const tinyet_recurrent_shape *const s = &params->shape;
  const int32_t units = s->units, rows = (units + 3) & ~INT32_C(3);
  int16_t *const sums = (int16_t *)scratch;
  for (int32_t n = 0; n < s->batch; n++) {
    const int8_t *in = x + s->x_first, *state = h;
    int8_t *out = y + s->y_first;
    for (int32_t t = s->steps; t != 0; t--) {
      memset(sums, 0, (size_t)rows * sizeof *sums);
      tinyet_gate_sums(in, &params->x, 1, rows, sums);
      tinyet_gate_sums(state, &params->h, 1, rows, sums);
      for (int32_t i = 0; i < units; i++) {
        const int32_t rectified = sums[i] < 0 ? 0 : sums[i];
        const int32_t result = params->relu != 0 ? rectified : tinyet_gate_tanh(sums[i], 3);
        const int32_t value = tinyet_requantize_form(result, params->multiplier, params->form, params->zero_point);
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
