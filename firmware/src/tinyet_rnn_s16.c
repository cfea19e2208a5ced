/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_gates_lut.h"
#include "tinyet_rnn.h"

static int32_t state_of(int32_t sum, const tinyet_rnn_s16_params *params) {
  if (params->relu != 0) {
    return tinyet_clamp(4 * sum, 0, INT16_MAX);
  }
  const int32_t result = tinyet_lut_tanh(params->table, sum, 3) * INT32_C(32768);
  return tinyet_clamp(tinyet_requantize_form(result, params->multiplier, params->form, 0), INT16_MIN, INT16_MAX);
}

void tinyet_rnn_s16(const int16_t *x, const int16_t *h, int16_t *y, int16_t *h_n, void *scratch,
                    const tinyet_rnn_s16_params *params) {
  const tinyet_recurrent_shape *const s = &params->shape;
  const int32_t units = s->units, rows = (units + 3) & ~INT32_C(3);
  int16_t *const sums = (int16_t *)scratch;
  for (int32_t n = 0; n < s->batch; n++) {
    const int16_t *in = x + s->x_first, *state = h;
    int16_t *out = y + s->y_first;
    for (int32_t t = s->steps; t != 0; t--) {
      memset(sums, 0, (size_t)rows * sizeof *sums);
      tinyet_lut_sums_s16(in, &params->x, 1, rows, sums);
      tinyet_lut_sums_s16(state, &params->h, 1, rows, sums);
      for (int32_t i = 0; i < units; i++) {
        out[i] = (int16_t)state_of(sums[i], params);
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
