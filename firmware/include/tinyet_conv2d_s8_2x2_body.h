/* SPDX-License-Identifier: Apache-2.0 */
/* int8 convolutions, two pixels by two channels at a time. The file that includes this has defined KERNEL, KERNEL_1X1,
 * their names, and REQUANTIZE, the function that makes an output of a sum. */
#ifndef TINYET_CONV2D_S8_2X2_BODY_H
#define TINYET_CONV2D_S8_2X2_BODY_H

#include "tinyet_conv2d.h"
#include "tinyet_form.h"
#include "tinyet_im2col.h"

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
      const int32_t multiplier = q->multiplier[d], form = TINYET_FORM(q->shift, d);
      const int32_t x = REQUANTIZE(sums[2], multiplier, form, zero_point);
      const int32_t y = REQUANTIZE(sums[3], multiplier, form, zero_point);
      out_x[d] = (int8_t)tinyet_clamp(x, low, high);
      out_y[d] = (int8_t)tinyet_clamp(y, low, high);
    }
    const int32_t multiplier = q->multiplier[c], form = TINYET_FORM(q->shift, c);
    const int32_t x = REQUANTIZE(sums[0], multiplier, form, zero_point);
    const int32_t y = REQUANTIZE(sums[1], multiplier, form, zero_point);
    out_x[c] = (int8_t)tinyet_clamp(x, low, high);
    out_y[c] = (int8_t)tinyet_clamp(y, low, high);
  }
}

enum { STEP = 2 };
#include "tinyet_conv2d_s8_body.h"

#endif
