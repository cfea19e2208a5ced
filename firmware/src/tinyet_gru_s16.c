/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_gates_lut.h"
#include "tinyet_gru.h"

void tinyet_gru_s16(const int16_t *x, const int16_t *h, int16_t *y, int16_t *h_n, void *scratch,
                    const tinyet_gru_s16_params *params) {
  const tinyet_recurrent_shape *const s = &params->shape;
  const int32_t units = s->units, rows = (units + 3) & ~INT32_C(3);
  int16_t *const sums = (int16_t *)scratch;
  for (int32_t n = 0; n < s->batch; n++) {
    const int16_t *in = x + s->x_first, *state = h;
    int16_t *out = y + s->y_first;
    for (int32_t t = s->steps; t != 0; t--) {
      memset(sums, 0, (size_t)(4 * rows) * sizeof *sums);
      tinyet_lut_sums_s16(in, &params->x, 3, rows, sums);
      tinyet_lut_sums_s16(state, &params->h, 3, rows, sums + rows);
      for (int32_t i = 0; i < units; i++) {
        const int16_t *const gate = sums + i;
        const int32_t own = tinyet_shortened(tinyet_lut_sigmoid(params->table, gate[rows]) * gate[3 * rows], 15);
        const int32_t inner = tinyet_clamp(gate[0] + own, INT16_MIN, INT16_MAX);
        const int32_t candidate = tinyet_lut_tanh(params->table, inner, 3);
        const int32_t update = tinyet_lut_sigmoid(params->table, gate[2 * rows]);
        const int32_t fresh = tinyet_requantize_form((32768 - update) * candidate, params->multiplier, params->form, 0);
        const int32_t value = tinyet_clamp(fresh, INT16_MIN, INT16_MAX) + tinyet_shortened(update * state[i], 15);
        out[i] = (int16_t)tinyet_clamp(value, INT16_MIN, INT16_MAX);
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
  }
}
