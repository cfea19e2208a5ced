/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_linear.h"

/* Four outputs at once: their sums are independent, so the order of each stays as documented. */
void tinyet_linear_f32(const float *input, float *output, const tinyet_linear_f32_params *params) {
  const int32_t depth = params->depth, count = params->out_count;
  const float low = params->clamp_low, high = params->clamp_high;
  for (int32_t row = 0; row < params->rows; row++) {
    const TINYET_ROM float *w = params->weights;
    int32_t n = 0;
    for (; n + 4 <= count; n += 4) {
      const TINYET_ROM float *w1 = w + depth, *w2 = w1 + depth, *w3 = w2 + depth;
      float a = params->bias[n], b = params->bias[n + 1], c = params->bias[n + 2], d = params->bias[n + 3];
      for (int32_t k = 0; k < depth; k++) {
        const float value = input[k];
        a += value * *w++;
        b += value * *w1++;
        c += value * *w2++;
        d += value * *w3++;
      }
      w = w3;
      *output++ = tinyet_clamp_f32(a, low, high);
      *output++ = tinyet_clamp_f32(b, low, high);
      *output++ = tinyet_clamp_f32(c, low, high);
      *output++ = tinyet_clamp_f32(d, low, high);
    }
    for (; n < count; n++) {
      float sum = params->bias[n];
      for (int32_t k = 0; k < depth; k++) {
        sum += input[k] * *w++;
      }
      *output++ = tinyet_clamp_f32(sum, low, high);
    }
    input += depth;
  }
}
