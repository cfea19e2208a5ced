/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_biquads.h"

void tinyet_biquads_f32(const float *x, const float *state, float *y, float *after,
                        const tinyet_biquads_f32_params *params) {
  const int32_t steps = params->steps;
  for (int32_t row = 0; row < params->rows; row++) {
    const float *in = x;
    const TINYET_ROM float *section = params->sections;
    for (int32_t s = 0; s < params->count; s++) {
      const float b0 = section[0], b1 = section[1], b2 = section[2], a1 = section[3], a2 = section[4];
      float first = state[0], second = state[1];
      for (int32_t t = 0; t < steps; t++) {
        const float value = in[t], made = b0 * value + first;
        first = (b1 * value - a1 * made) + second;
        second = b2 * value - a2 * made;
        y[t] = made;
      }
      after[0] = first;
      after[1] = second;
      state += 2;
      after += 2;
      section += 5;
      in = y;
    }
    x += steps;
    y += steps;
  }
}
