/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_svdf.h"

/* What a frame comes to in each filter, every `memory` elements from `newest` on. */
static void put_newest(const float *x, float *newest, const tinyet_svdf_f32_params *params) {
  const tinyet_svdf_shape *const s = &params->shape;
  const TINYET_ROM float *w = params->feature;
  for (int32_t f = s->filters; f != 0; f--) {
    float sum = 0.0f;
    for (int32_t k = 0; k < s->inputs; k++) {
      sum += x[k] * *w++;
    }
    *newest = sum;
    newest += s->memory;
  }
}

void tinyet_svdf_f32(const float *x, const float *state, float *y, float *state_n,
                     const tinyet_svdf_f32_params *params) {
  const tinyet_svdf_shape *const s = &params->shape;
  const int32_t filters = s->filters * s->memory;
  /* All of it at once: what comes to a filter from the next one is what put_newest writes over. */
  memmove(state_n, state + 1, (size_t)(s->batch * filters - 1) * sizeof *state);
  for (int32_t n = 0; n < s->batch; n++) {
    put_newest(x, state_n + s->memory - 1, params);
    const TINYET_ROM float *w = params->time;
    for (int32_t unit = 0; unit < s->units; unit++) {
      float value = params->bias[unit];
      for (int32_t r = s->rank; r != 0; r--) {
        float sum = 0.0f;
        for (int32_t k = s->memory; k != 0; k--) {
          sum += *state_n++ * *w++;
        }
        value += sum;
      }
      *y++ = tinyet_clamp_f32(value, params->clamp_low, params->clamp_high);
    }
    x += s->inputs;
  }
}
