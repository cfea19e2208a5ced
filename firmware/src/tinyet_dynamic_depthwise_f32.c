/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_depthwise.h"
#include "tinyet_dynamic.h"

typedef struct {
  const tinyet_dynamic_layer *layer;
  const float *factors; /* [channels] */
  int32_t zero_point;
} quantized_layer;

static inline void pixel(const int8_t *corner, void *outputs, int32_t at, const int32_t *offsets, int32_t taps,
                         int32_t channels, const int8_t *outside, const void *context) {
  const quantized_layer *const q = (const quantized_layer *)context;
  const tinyet_dynamic_layer *const layer = q->layer;
  const TINYET_ROM int32_t *const weight_sums = layer->weight_sums;
  const TINYET_ROM int8_t *w = layer->weights;
  const int32_t *const end = offsets + taps;
  float *const output = (float *)outputs + at;
  for (int32_t c = 0; c < channels; c += 4) {
    tinyet_sums4 s;
    for (int32_t i = 0; i < 4; i++) {
      s.sum[i] = -q->zero_point * weight_sums[c + i];
    }
    const int32_t rest = channels - c < 4 ? channels - c : 4;
    for (const int32_t *offset = offsets; offset != end; offset++) {
      const int8_t *x = corner + c + *offset;
      if (outside != NULL && *offset == TINYET_OUTSIDE) {
        x = outside;
      }
      if (rest == 4) {
        tinyet_add_tap(&s, x, w);
      } else {
        for (int32_t i = 0; i < rest; i++) {
          s.sum[i] += x[i] * w[i];
        }
      }
      w += 4;
    }
    for (int32_t i = 0; i < rest; i++) {
      output[c + i] = tinyet_dynamic_output(s.sum[i], q->factors[c + i], layer->bias[c + i], layer);
    }
  }
}

void tinyet_dynamic_depthwise_f32(const float *input, float *output, void *scratch,
                                  const tinyet_dynamic_conv2d_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const tinyet_dynamic_layer *const layer = &params->layer;
  float *const factors = (float *)scratch;
  int32_t *const offsets = (int32_t *)(void *)(factors + s->in_c);
  int8_t *const values = (int8_t *)(offsets + 2 * s->kernel_h * s->kernel_w);
  const tinyet_dynamic_quant quant =
      tinyet_dynamic_quantize(input, values, s->batch * s->in_h * s->in_w * s->in_c, layer);
  for (int32_t c = 0; c < s->in_c; c++) {
    factors[c] = quant.scale * layer->weight_scales[c];
  }
  const quantized_layer context = {layer, factors, quant.zero_point};
  tinyet_depthwise_walk(values, output, offsets, s, (int8_t)quant.zero_point, &context, pixel);
}
