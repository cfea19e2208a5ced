/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv_transpose2d.h"

void tinyet_conv_transpose2d_f32(const float *input, float *output, void *scratch,
                                 const tinyet_conv_transpose2d_f32_params *params) {
  const tinyet_conv_transpose2d_shape *const s = &params->shape;
  const tinyet_conv2d_f32_values *const v = &params->values;
  const int32_t in_count = s->in_c / s->groups, out_count = s->out_c / s->groups;
  const int32_t filter = s->kernel_h * s->kernel_w * in_count;
  tinyet_conv_transpose2d_tap *const taps = (tinyet_conv_transpose2d_tap *)scratch;
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t out_y = 0, row = 0, row_q = 0; out_y < s->out_h; out_y++) {
      for (int32_t out_x = 0, column = 0, column_q = 0; out_x < s->out_w; out_x++) {
        const int32_t count = tinyet_conv_transpose2d_taps(s, s->row_phases + 2 * row, row_q,
                                                           s->column_phases + 2 * column, column_q, taps);
        const TINYET_ROM float *weights = v->weights;
        int32_t c = 0;
        for (int32_t g = 0; g < s->groups; g++) {
          for (int32_t o = 0; o < out_count; o++) {
            float sum = v->bias[c];
            for (int32_t t = 0; t < count; t++) {
              const float *const x = input + g * in_count + taps[t].input;
              const TINYET_ROM float *const w = weights + taps[t].weight;
              for (int32_t k = 0; k < in_count; k++) {
                sum += x[k] * w[k];
              }
            }
            output[c++] = tinyet_clamp_f32(sum, v->clamp_low, v->clamp_high);
            weights += filter;
          }
        }
        output += s->out_c;
        if (++column == s->stride_w) {
          column = 0, column_q++;
        }
      }
      if (++row == s->stride_h) {
        row = 0, row_q++;
      }
    }
    input += s->in_h * s->in_w * s->in_c;
  }
}
