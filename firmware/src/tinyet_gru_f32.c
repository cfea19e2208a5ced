/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_gru.h"
#include "tinyet_math.h"

/* Adds the products of `count` values with their weights, three side by side, one after another; gives the weights behind
 * them. */
static const TINYET_ROM float *add_products(const float *x, int32_t count, const TINYET_ROM float *w, float sums[3]) {
  float a = sums[0], b = sums[1], c = sums[2];
  for (; count != 0; count--) {
    const float value = *x++;
    a += value * w[0], b += value * w[1], c += value * w[2];
    w += 3;
  }
  sums[0] = a, sums[1] = b, sums[2] = c;
  return w;
}

void tinyet_gru_f32(const float *x, const float *h, float *y, float *h_n, void *scratch,
                    const tinyet_gru_f32_params *params) {
  const tinyet_recurrent_shape *const s = &params->shape;
  const int32_t units = s->units;
  const size_t state_bytes = (size_t)units * sizeof *h;
  float *const fresh = (float *)scratch;
  for (int32_t n = 0; n < s->batch; n++) {
    const float *in = x + s->x_first, *state = h;
    float *out = y + s->y_first;
    for (int32_t t = s->steps; t != 0; t--) {
      const TINYET_ROM float *w = params->weights, *bias = params->bias;
      for (int32_t i = 0; i < units; i++) {
        float sums[3] = {bias[0], bias[1], bias[2]};
        w = add_products(in, s->inputs, w, sums);
        const float of_x = sums[2];
        sums[2] = bias[3];
        w = add_products(state, units, w, sums);
        const float candidate = tinyet_tanhf(of_x + tinyet_sigmoidf(sums[0]) * sums[2]);
        fresh[i] = candidate + tinyet_sigmoidf(sums[1]) * (state[i] - candidate);
        bias += 4;
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
