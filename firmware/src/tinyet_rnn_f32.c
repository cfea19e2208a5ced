/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_math.h"
#include "tinyet_rnn.h"

void tinyet_rnn_f32(const float *x, const float *h, float *y, float *h_n, void *scratch,
                    const tinyet_rnn_f32_params *params) {
  const tinyet_recurrent_shape *const s = &params->shape;
  const int32_t units = s->units;
  const size_t state_bytes = (size_t)units * sizeof *h;
  float *const fresh = (float *)scratch;
  for (int32_t n = 0; n < s->batch; n++) {
    const float *in = x + s->x_first, *state = h;
    float *out = y + s->y_first;
    for (int32_t t = s->steps; t != 0; t--) {
      const TINYET_ROM float *w = params->weights;
      for (int32_t i = 0; i < units; i++) {
        float sum = params->bias[i];
        for (int32_t k = 0; k < s->inputs; k++) {
          sum += in[k] * *w++;
        }
        for (int32_t k = 0; k < units; k++) {
          sum += state[k] * *w++;
        }
        fresh[i] = params->relu != 0 ? (sum < 0.0f ? 0.0f : sum) : tinyet_tanhf(sum);
      }
      memcpy(out, fresh, state_bytes);
      state = out;
      in += s->x_step;
      out += s->y_step;
    }
    if (y != h_n) {
      memcpy(h_n, state, state_bytes);
    }
    x += s->steps * s->inputs;
    h += units;
    y += s->y_batch;
    h_n += units;
  }
}
