/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by tiles of pixels, whose inputs are in words by threes (tinyet_windows_in_threes_body.h). The file that includes
 * this has defined
 *
 *   KERNEL    the function's name
 *   PARAMS    the type of its parameters
 *   PADDING   in these, what inputs outside the image are
 *   PIXELS    of a tile at most; IS_TILE(count): whether so many are one
 *   outputs(patch, output, row, count, params)   which makes all channels of a tile, and writes no others; pixels are `row`
 *                                                bytes apart. Of fewer pixels it may write as many as a tile has
 *   CLAMP(values, count)   what is still done to outputs; nothing where it is not defined */
#ifndef TINYET_CONV2D_THREES_BODY_H
#define TINYET_CONV2D_THREES_BODY_H

#include "tinyet_windows_in_threes_body.h"

#if !defined(CLAMP)
#define CLAMP(values, count)
#endif

void KERNEL(const int8_t *input, int8_t *output, void *scratch, const PARAMS *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t taps = s->kernel_h * s->kernel_w * s->in_c, pixels = s->out_h * s->out_w, out_c = s->out_c;
  word *const patch = (word *)scratch;
  int8_t *const apart = (int8_t *)scratch + 4 * STEP * taps;
  const int32_t one_tap = of_one_tap(s);
  for (int32_t n = 0; n < s->batch; n++) {
    window_walk walk = first_window(input, s);
    for (int32_t pixel = 0; pixel < pixels; pixel += PIXELS) {
      const int32_t count = pixels - pixel < PIXELS ? pixels - pixel : (int32_t)PIXELS;
      gather_windows(patch, pixel, count, one_tap, &walk, s, PADDING);
      if (IS_TILE(count)) {
        outputs(patch, output, out_c, count, params);
      } else {
        outputs(patch, apart, out_c, count, params);
        memcpy(output, apart, (size_t)(count * out_c));
      }
      CLAMP(output, count * out_c);
      output += count * out_c;
    }
    input += s->in_h * s->in_w * s->in_c;
  }
}

#endif
