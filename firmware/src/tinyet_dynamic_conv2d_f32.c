/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_dynamic.h"
#include "tinyet_im2col.h"

/* Channels first ... first + count - 1 of two pixels; both outputs may be the same. */
static void two_pixels(const int16_t *patch, const TINYET_ROM int8_t *w, float *out_x, float *out_y, int32_t steps,
                       int32_t first, int32_t count, const float *factors, int32_t zero_point,
                       const tinyet_dynamic_layer *layer) {
  const int32_t end = first + count;
  for (int32_t c = first; c < end; c += 2) {
    const int32_t d = c + 1 < end ? c + 1 : c; /* an odd last channel has zeros for a partner */
    const int32_t start_c = -zero_point * layer->weight_sums[c], start_d = -zero_point * layer->weight_sums[d];
    int32_t sums[4] = {start_c, start_c, start_d, start_d};
    w = tinyet_dot_2x2(w, patch, steps, sums);
    out_x[c] = tinyet_dynamic_output(sums[0], factors[c], layer->bias[c], layer);
    out_y[c] = tinyet_dynamic_output(sums[1], factors[c], layer->bias[c], layer);
    if (d != c) {
      out_x[d] = tinyet_dynamic_output(sums[2], factors[d], layer->bias[d], layer);
      out_y[d] = tinyet_dynamic_output(sums[3], factors[d], layer->bias[d], layer);
    }
  }
}

void tinyet_dynamic_conv2d_f32(const float *input, float *output, void *scratch,
                               const tinyet_dynamic_conv2d_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const tinyet_dynamic_layer *const layer = &params->layer;
  const int32_t in_count = s->in_c / s->groups, out_count = s->out_c / s->groups;
  const int32_t depth = s->kernel_h * s->kernel_w * in_count;
  const int32_t steps = (depth + 1) / 2, group_bytes = (out_count + 1) / 2 * steps * 4;
  const int32_t pixels = s->out_h * s->out_w, image_bytes = s->in_h * s->in_w * s->in_c;
  float *const factors = (float *)scratch;
  int16_t *const patch = (int16_t *)(factors + s->out_c);
  int8_t *const values = (int8_t *)(patch + 4 * steps);
  const tinyet_dynamic_quant quant =
      tinyet_dynamic_quantize(input, values, s->batch * image_bytes, layer);
  for (int32_t c = 0; c < s->out_c; c++) {
    factors[c] = quant.scale * layer->weight_scales[c];
  }
  memset(patch, 0, (size_t)(8 * steps));
  for (int32_t n = 0; n < s->batch; n++) {
    const int8_t *const image = values + n * image_bytes;
    for (int32_t g = 0; g < s->groups; g++) {
      int32_t row = 0, column = 0;
      for (int32_t pixel = 0; pixel < pixels; pixel += 2) {
        float *const out_x = output + pixel * s->out_c;
        float *out_y = out_x;
        tinyet_im2col(image, patch, row, column, g * in_count, in_count, s, quant.zero_point);
        if (pixel + 1 < pixels) {
          out_y += s->out_c;
          if (++column == s->out_w) {
            column = 0, row++;
          }
        } /* else the second pixel is the first once more */
        tinyet_im2col(image, patch + 2, row, column, g * in_count, in_count, s, quant.zero_point);
        if (++column == s->out_w) {
          column = 0, row++;
        }
        two_pixels(patch, layer->weights + g * group_bytes, out_x, out_y, steps, g * out_count, out_count, factors,
                   quant.zero_point, layer);
      }
    }
    output += pixels * s->out_c;
  }
}
