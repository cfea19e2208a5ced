/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM with and without a projection. The file that includes this has defined
 *
 *   KERNEL             the function's name
 *   PARAMS             the type of its parameters
 *   LAYER              the tinyet_lstm_f32_params in these
 *   CELL(value)        what is kept of a cell
 *   PUT(hidden, out)   makes the state of what the output gate lets through */
#ifndef TINYET_LSTM_F32_BODY_H
#define TINYET_LSTM_F32_BODY_H

#include "tinyet_gates_f32.h"
#include "tinyet_lstm.h"
#include "tinyet_math.h"

void KERNEL(const float *x, const float *h, const float *c, float *y, float *h_n, float *c_n, void *scratch,
          const PARAMS *params) {
  const tinyet_lstm_f32_params *const layer = LAYER;
  const tinyet_recurrent_shape *const s = &layer->shape;
  const int32_t units = s->units;
  float *const hidden = (float *)scratch;
  memcpy(c_n, c, (size_t)(s->batch * units) * sizeof *c);
  for (int32_t n = 0; n < s->batch; n++) {
    const float *in = x + s->x_first, *state = h;
    float *out = y + s->y_first;
    for (int32_t t = s->steps; t != 0; t--) {
      const TINYET_ROM float *w = layer->weights, *bias = layer->bias;
      for (int32_t i = 0; i < units; i++) {
        float sums[4] = {bias[0], bias[1], bias[2], bias[3]};
        w = tinyet_gates_f32(in, s->inputs, w, sums);
        w = tinyet_gates_f32(state, s->outputs, w, sums);
        bias += 4;
        const float cell = tinyet_sigmoidf(sums[1]) * c_n[i] + tinyet_sigmoidf(sums[0]) * tinyet_tanhf(sums[2]);
        c_n[i] = CELL(cell);
        hidden[i] = tinyet_sigmoidf(sums[3]) * tinyet_tanhf(c_n[i]);
      }
      PUT(hidden, out);
      state = out;
      in += s->x_step;
      out += s->y_step;
    }
    if (y != h_n) {
      memcpy(h_n, state, (size_t)s->outputs * sizeof *state);
    }
    x += s->steps * s->inputs;
    h += s->outputs;
    y += s->y_batch;
    h_n += s->outputs;
    c_n += units;
  }
}

#endif
