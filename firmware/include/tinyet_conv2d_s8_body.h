/* SPDX-License-Identifier: Apache-2.0 */
/* The two kernels of int8 convolutions, for weights of any width: any convolution, and 1x1 without padding, where each pixel is
 * its own patch. The file that includes this has defined KERNEL, KERNEL_1X1, their names, and STEP and two_pixels as
 * tinyet_conv2d_body.h asks for them. */
#ifndef TINYET_CONV2D_S8_BODY_H
#define TINYET_CONV2D_S8_BODY_H

#include "tinyet_conv2d.h"
#include "tinyet_im2col.h"

typedef int8_t element;
typedef tinyet_conv2d_s8_quant kernel_quant;
typedef tinyet_conv2d_s8_params kernel_params;

static inline void gather_patch(const int8_t *image, int16_t *patch, int32_t out_y, int32_t out_x, int32_t first,
                                int32_t count, const tinyet_conv2d_shape *s, const tinyet_conv2d_s8_quant *q) {
  tinyet_im2col(image, patch, out_y, out_x, first, count, s, q->in_zero_point);
}

#include "tinyet_conv2d_body.h"

void KERNEL_1X1(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t pixels = s->batch * s->out_h * s->out_w, steps = (s->in_c + STEP - 1) / STEP;
  int16_t *const patch = (int16_t *)scratch;
  memset(scratch, 0, (size_t)(4 * STEP * steps));
  for (int32_t pixel = 0; pixel < pixels; pixel += 2) {
    const int32_t next = pixel + 1 < pixels ? 1 : 0;
    tinyet_im2col_copy(patch, 0, input, s->in_c);
    tinyet_im2col_copy(patch + 2, 0, input + next * s->in_c, s->in_c);
    two_pixels(patch, params->quant.weights, output, output + next * s->out_c, steps, 0, s->out_c, &params->quant);
    input += 2 * s->in_c;
    output += 2 * s->out_c;
  }
}

#endif
