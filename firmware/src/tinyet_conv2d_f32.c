/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d.h"

void tinyet_conv2d_f32(const float *input, float *output, const tinyet_conv2d_f32_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const tinyet_conv2d_f32_values *const v = &params->values;
  const int32_t in_count = s->in_c / s->groups, out_count = s->out_c / s->groups;
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t out_y = 0; out_y < s->out_h; out_y++) {
      for (int32_t out_x = 0; out_x < s->out_w; out_x++) {
        const TINYET_ROM float *w = v->weights;
        const int32_t top = out_y * s->stride_h - s->pad_top, left = out_x * s->stride_w - s->pad_left;
        for (int32_t c = 0; c < s->out_c; c++) {
          const float *const group = input + (c / out_count) * in_count;
          float sum = v->bias[c];
          for (int32_t i = 0; i < s->kernel_h; i++) {
            const int32_t y = top + i * s->dilation_h;
            for (int32_t j = 0; j < s->kernel_w; j++) {
              const int32_t x = left + j * s->dilation_w;
              if (y >= 0 && y < s->in_h && x >= 0 && x < s->in_w) {
                const float *const pixel = group + (y * s->in_w + x) * s->in_c;
                for (int32_t k = 0; k < in_count; k++) {
                  sum += pixel[k] * w[k];
                }
              }
              w += in_count;
            }
          }
          *output++ = tinyet_clamp_f32(sum, v->clamp_low, v->clamp_high);
        }
      }
    }
    input += s->in_h * s->in_w * s->in_c;
  }
}
