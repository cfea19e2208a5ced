/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d.h"

/* Sums live in scratch, a row of out_c: the loops over taps are outside, the loop over channels inside, so that input and
 * weights are both read front to back and the bounds of the image are tested once a tap, not once a product. */
void tinyet_depthwise_multiplier_s8(const int8_t *input, int8_t *output, void *scratch,
                                    const tinyet_conv2d_s8_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const tinyet_conv2d_s8_quant *const q = &params->quant;
  const int32_t times = s->out_c / s->in_c;
  const int32_t offset = -q->in_zero_point;
  int32_t *const sums = (int32_t *)scratch;
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t out_y = 0; out_y < s->out_h; out_y++) {
      for (int32_t out_x = 0; out_x < s->out_w; out_x++) {
        tinyet_copy_rom(sums, q->bias, sizeof(int32_t) * (size_t)s->out_c);
        for (int32_t i = 0; i < s->kernel_h; i++) {
          const int32_t y = out_y * s->stride_h - s->pad_top + i * s->dilation_h;
          if (y < 0 || y >= s->in_h) {
            continue;
          }
          for (int32_t j = 0; j < s->kernel_w; j++) {
            const int32_t x = out_x * s->stride_w - s->pad_left + j * s->dilation_w;
            if (x < 0 || x >= s->in_w) {
              continue;
            }
            const int8_t *TINYET_RESTRICT pixel = input + (y * s->in_w + x) * s->in_c;
            const TINYET_ROM int8_t *TINYET_RESTRICT w = q->weights + (i * s->kernel_w + j) * s->out_c;
            int32_t *TINYET_RESTRICT sum = sums;
            int32_t *const end = sums + s->out_c;
            while (sum != end) {
              const int32_t value = *pixel++ + offset;
              for (int32_t k = 0; k < times; k++) {
                *sum++ += value * *w++;
              }
            }
          }
        }
        for (int32_t c = 0; c < s->out_c; c++) {
          const int32_t value = tinyet_requantize(sums[c], q->multiplier[c], q->shift[c]) + q->out_zero_point;
          *output++ = (int8_t)tinyet_clamp(value, q->clamp_low, q->clamp_high);
        }
      }
    }
    input += s->in_h * s->in_w * s->in_c;
  }
}
