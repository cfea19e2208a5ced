/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d.h"
#include "tinyet_patches.h"

/* Both kernels here copy two pixels' patches to scratch. Once there they serve all channels. */

/* Channels first ... first + count - 1 of two pixels; both outputs may be the same. */
static void two_pixels(const int16_t *patch, const TINYET_ROM int8_t *w, int8_t *out_x, int8_t *out_y, int32_t steps,
                       int32_t first, int32_t count, const tinyet_conv2d_s8_quant *q) {
  const int32_t zero_point = q->out_zero_point, low = q->clamp_low, high = q->clamp_high;
  const int32_t end = first + count;
  for (int32_t c = first; c < end; c += 2) {
    const int32_t d = c + 1 < end ? c + 1 : c; /* an odd last channel has zeros for a partner */
    int32_t sums[4] = {q->bias[c], q->bias[c], q->bias[d], q->bias[d]};
    w = tinyet_dot_2x2(w, patch, steps, sums);
    if (d != c) {
      const int32_t multiplier = q->multiplier[d], form = q->shift[d];
      const int32_t x = tinyet_requantize_form(sums[2], multiplier, form, zero_point);
      const int32_t y = tinyet_requantize_form(sums[3], multiplier, form, zero_point);
      out_x[d] = (int8_t)tinyet_clamp(x, low, high);
      out_y[d] = (int8_t)tinyet_clamp(y, low, high);
    }
    const int32_t multiplier = q->multiplier[c], form = q->shift[c];
    const int32_t x = tinyet_requantize_form(sums[0], multiplier, form, zero_point);
    const int32_t y = tinyet_requantize_form(sums[1], multiplier, form, zero_point);
    out_x[c] = (int8_t)tinyet_clamp(x, low, high);
    out_y[c] = (int8_t)tinyet_clamp(y, low, high);
  }
}

void tinyet_conv2d_s8(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const tinyet_conv2d_s8_quant *const q = &params->quant;
  const int32_t in_count = s->in_c / s->groups, out_count = s->out_c / s->groups;
  const int32_t depth = s->kernel_h * s->kernel_w * in_count;
  const int32_t steps = (depth + 1) / 2, group_bytes = (out_count + 1) / 2 * steps * 4;
  const int32_t pixels = s->out_h * s->out_w;
  int16_t *const patch = (int16_t *)scratch;
  memset(scratch, 0, (size_t)(8 * steps));
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t g = 0; g < s->groups; g++) {
      int32_t row = 0, column = 0;
      for (int32_t pixel = 0; pixel < pixels; pixel += 2) {
        int8_t *const out_x = output + pixel * s->out_c;
        int8_t *out_y = out_x;
        tinyet_gather(input, patch, row, column, g * in_count, in_count, s, q->in_zero_point);
        if (pixel + 1 < pixels) {
          out_y += s->out_c;
          if (++column == s->out_w) {
            column = 0, row++;
          }
        } /* else the second pixel is the first once more */
        tinyet_gather(input, patch + 2, row, column, g * in_count, in_count, s, q->in_zero_point);
        if (++column == s->out_w) {
          column = 0, row++;
        }
        two_pixels(patch, q->weights + g * group_bytes, out_x, out_y, steps, g * out_count, out_count, q);
      }
    }
    input += s->in_h * s->in_w * s->in_c;
    output += pixels * s->out_c;
  }
}

void tinyet_conv2d_1x1_s8(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t pixels = s->batch * s->out_h * s->out_w, steps = (s->in_c + 1) / 2;
  int16_t *const patch = (int16_t *)scratch;
  memset(scratch, 0, (size_t)(8 * steps));
  for (int32_t pixel = 0; pixel < pixels; pixel += 2) {
    const int32_t next = pixel + 1 < pixels ? 1 : 0;
    tinyet_put(patch, 0, input, s->in_c);
    tinyet_put(patch + 2, 0, input + next * s->in_c, s->in_c);
    two_pixels(patch, params->quant.weights, output, output + next * s->out_c, steps, 0, s->out_c, &params->quant);
    input += 2 * s->in_c;
    output += 2 * s->out_c;
  }
}
