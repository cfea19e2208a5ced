/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

static TINYET_NOINLINE void row(const float *a, const float *b, float *output, const tinyet_binary_params *params) {
  TINYET_BROADCAST_ROW(float, float, a, b, output, &params->shape, x >= 0.0f ? x : y * x);
}

void tinyet_prelu_f32(const float *x, const float *slope, float *output, const tinyet_binary_params *params) {
  TINYET_BROADCAST(float, x, slope, output, params, row);
}
