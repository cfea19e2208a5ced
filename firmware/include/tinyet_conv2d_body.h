/* SPDX-License-Identifier: Apache-2.0 */
/* Any convolution, for elements of any type: the patches of two output pixels at a time are copied to scratch, and once there
 * they serve all channels. The file that includes this has defined
 *
 *   KERNEL          the function's name
 *   element         the type of the elements
 *   kernel_params   its parameters, and kernel_quant: their member `quant`
 *   STEP            elements of depth in four bytes of weights, which are those of two channels
 *   gather_patch(image, patch, out_y, out_x, first, count, shape, quant)
 *                   one pixel's patch of channels first ... first + count - 1, in the order of the weights
 *   two_pixels(patch, weights, out_x, out_y, steps, first, count, quant)
 *                   channels first ... first + count - 1 of two pixels; both outputs may be the same */
#ifndef TINYET_CONV2D_BODY_H
#define TINYET_CONV2D_BODY_H

#include "tinyet_conv2d.h"

void KERNEL(const element *input, element *output, void *scratch, const kernel_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const kernel_quant *const q = &params->quant;
  const int32_t in_count = s->in_c / s->groups, out_count = s->out_c / s->groups;
  const int32_t depth = s->kernel_h * s->kernel_w * in_count;
  const int32_t steps = (depth + STEP - 1) / STEP, group_bytes = (out_count + 1) / 2 * steps * 4;
  const int32_t pixels = s->out_h * s->out_w;
  int16_t *const patch = (int16_t *)scratch;
  memset(scratch, 0, (size_t)(4 * STEP * steps));
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t g = 0; g < s->groups; g++) {
      int32_t row = 0, column = 0;
      for (int32_t pixel = 0; pixel < pixels; pixel += 2) {
        element *const out_x = output + pixel * s->out_c;
        element *out_y = out_x;
        gather_patch(input, patch, row, column, g * in_count, in_count, s, q);
        if (pixel + 1 < pixels) {
          out_y += s->out_c;
          if (++column == s->out_w) {
            column = 0, row++;
          }
        } /* else the second pixel is the first once more */
        gather_patch(input, patch + 2, row, column, g * in_count, in_count, s, q);
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

#endif
