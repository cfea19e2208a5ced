/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_dot_1x4.h"
#include "tinyet_dynamic.h"

void tinyet_dynamic_linear_f32(const float *input, float *output, void *scratch,
                               const tinyet_dynamic_linear_params *params) {
  const tinyet_dynamic_layer *const layer = &params->layer;
  const int32_t depth = params->depth, count = params->out_count, blocks = depth / 4, rest = depth & 3;
  float *const factors = (float *)scratch;
  int8_t *const values = (int8_t *)(factors + count);
  const tinyet_dynamic_quant quant =
      tinyet_dynamic_quantize(input, values, params->rows * depth, layer);
  for (int32_t n = 0; n < count; n++) {
    factors[n] = quant.scale * layer->weight_scales[n];
  }
  const int8_t *x = values;
  for (int32_t row = 0; row < params->rows; row++) {
    const TINYET_ROM int8_t *w = layer->weights;
    for (int32_t n = 0; n < count; n += 4) {
      int32_t sums[4];
      for (int32_t i = 0; i < 4; i++) {
        sums[i] = -quant.zero_point * layer->weight_sums[n + i];
      }
      w = tinyet_dot_1x4(x, w, blocks, rest, sums);
      w += rest != 0 ? 16 - rest : 0;
      const int32_t end = count - n < 4 ? count - n : 4;
      for (int32_t i = 0; i < end; i++) {
        *output++ = tinyet_dynamic_output(sums[i], factors[n + i], layer->bias[n + i], layer);
      }
    }
    x += depth;
  }
}
