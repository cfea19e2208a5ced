/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution of integers of any type with a channel multiplier. The file that includes this has defined
 *
 *   KERNEL          the function's name
 *   element         the type of the elements
 *   kernel_params   its parameters, and kernel_quant: their member `quant`
 *   BEGIN(bytes)    writes what `sums` begin with, `bytes` of them
 *   OFFSET          what is added to the input, an expression of the quant `q`
 *   RESCALED        sums[c] in the output's scale, an expression of `sums`, `c` and `q`
 *   APART           1: a multiplier of 1 has a loop of its own, where OFFSET is 0 */
#ifndef TINYET_DEPTHWISE_MULTIPLIER_BODY_H
#define TINYET_DEPTHWISE_MULTIPLIER_BODY_H

#include "tinyet_conv2d.h"

/* Sums live in scratch, a row of out_c: the loops over taps are outside, the loop over channels inside, so that input and
 * weights are both read front to back and the bounds of the image are tested once a tap, not once a product. */
void KERNEL(const element *input, element *output, void *scratch, const kernel_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const kernel_quant *const q = &params->quant;
  const int32_t times = s->out_c / s->in_c;
  const int32_t offset = OFFSET;
  int32_t *const sums = (int32_t *)scratch;
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t out_y = 0; out_y < s->out_h; out_y++) {
      for (int32_t out_x = 0; out_x < s->out_w; out_x++) {
        BEGIN(sizeof(int32_t) * (size_t)s->out_c);
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
            const element *TINYET_RESTRICT pixel = input + (y * s->in_w + x) * s->in_c;
            const TINYET_ROM int8_t *TINYET_RESTRICT w = q->weights + (i * s->kernel_w + j) * s->out_c;
            int32_t *TINYET_RESTRICT sum = sums;
            int32_t *const end = sums + s->out_c;
#if APART
            if (times == 1) {
              while (sum != end) {
                *sum++ += (int32_t)*pixel++ * *w++;
              }
            } else
#endif
            {
              while (sum != end) {
                const int32_t value = *pixel++ + offset;
                for (int32_t k = 0; k < times; k++) {
                  *sum++ += value * *w++;
                }
              }
            }
          }
        }
        for (int32_t c = 0; c < s->out_c; c++) {
          const int32_t value = RESCALED;
          *output++ = (element)tinyet_clamp(value, q->clamp_low, q->clamp_high);
        }
      }
    }
    input += s->in_h * s->in_w * s->in_c;
  }
}

#endif
