/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_lstm.h"

static void project(const float *hidden, float *out, const tinyet_lstm_projected_f32_params *params) {
  const TINYET_ROM float *w = params->projection;
  for (int32_t n = params->layer.shape.outputs; n != 0; n--) {
    float sum = 0.0f;
    for (int32_t k = 0; k < params->layer.shape.units; k++) {
      sum += hidden[k] * *w++;
    }
    *out++ = sum;
  }
}

#define KERNEL tinyet_lstm_projected_f32
#define PARAMS tinyet_lstm_projected_f32_params
#define LAYER &params->layer
#define CELL(value) value
#define PUT(hidden, out) project(hidden, out, params)
#include "tinyet_lstm_f32_body.h"
