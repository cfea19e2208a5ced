/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d.h"
#include "tinyet_window.h"

/* `channels` outputs of one pixel, 4 or 1: their sums are independent, so the order of each stays as documented. weights: of
 * the first tap in the image. */
static inline __attribute__((always_inline)) void block(const float *first, const TINYET_ROM float *weights,
                                                        const TINYET_ROM float *bias, float *output, tinyet_span up,
                                                        tinyet_span across, const tinyet_conv2d_f32_params *params,
                                                        int32_t channels) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t next = s->dilation_w * s->in_c, next_row = s->dilation_h * s->in_w * s->in_c;
  float sums[4];
  for (int32_t c = 0; c < channels; c++) {
    sums[c] = bias[c];
  }
  for (int32_t i = up.count; i > 0; i--, first += next_row, weights += s->kernel_w * channels) {
    const float *x = first;
    const TINYET_ROM float *w = weights;
    for (int32_t j = across.count; j > 0; j--, x += next, w += channels) {
      TINYET_UNROLL(4)
      for (int32_t c = 0; c < channels; c++) {
        sums[c] += x[c] * w[c];
      }
    }
  }
  for (int32_t c = 0; c < channels; c++) {
    output[c] = tinyet_clamp_f32(sums[c], params->values.clamp_low, params->values.clamp_high);
  }
}

void tinyet_depthwise_f32(const float *input, float *output, const tinyet_conv2d_f32_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t taps = s->kernel_h * s->kernel_w, row = s->in_w * s->in_c;
  for (int32_t n = 0; n < s->batch; n++, input += s->in_h * row) {
    for (int32_t out_y = 0; out_y < s->out_h; out_y++) {
      const tinyet_span up =
          tinyet_span_inside(out_y * s->stride_h - s->pad_top, s->kernel_h, s->dilation_h, s->in_h);
      for (int32_t out_x = 0; out_x < s->out_w; out_x++, output += s->out_c) {
        const tinyet_span across =
            tinyet_span_inside(out_x * s->stride_w - s->pad_left, s->kernel_w, s->dilation_w, s->in_w);
        const float *const first = input + up.start * row + across.start * s->in_c;
        const TINYET_ROM float *const w = params->values.weights;
        const TINYET_ROM float *const bias = params->values.bias;
        const int32_t skipped = up.first * s->kernel_w + across.first;
        int32_t c = 0;
        for (; c + 4 <= s->out_c; c += 4) {
          block(first + c, w + c * taps + 4 * skipped, bias + c, output + c, up, across, params, 4);
        }
        for (; c < s->out_c; c++) {
          block(first + c, w + c * taps + skipped, bias + c, output + c, up, across, params, 1);
        }
      }
    }
  }
}
