/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised pointwise int8 convolutions of at most eight input channels (k8), with int16 weights, whose products, rounding and
 * stores are a printed function (tinyet/tiles): what it computes, in C.
 *
 * All inputs of a pixel stay in registers, while the weights of one output channel after another go by.
 *
 * The weight stream, in words, for each output channel:
 *   bias | the weights of each pair of input channels (tinyet_widen_dsp) | multiplier | offset | shift, which is missing
 *   where the rounding is one-sided
 * Weights and bias have the shift before the multiplication (tinyet_before_dsp) in them. */
#ifndef TINYET_CONV2D_K8_DSP_H
#define TINYET_CONV2D_K8_DSP_H

#include "tinyet_conv2d_tiles_dsp.h"

typedef struct {
  int32_t channels, outputs; /* of a pixel */
  tinyet_rounding_dsp rounding;
} tinyet_few_shape_dsp;

/* A printed function: the outputs of pixels that lie side by side, up to `end`. */
typedef void (*tinyet_few_function_dsp)(const int8_t *input, const int32_t *weights, int8_t *output, const int8_t *end);

TINYET_DSP_INLINE void tinyet_few_dsp(const int8_t *input, const int32_t *weights, int8_t *output, const int8_t *end,
                                      const tinyet_few_shape_dsp s) {
  const int32_t pairs = tinyet_int16x2_count_dsp(s.channels);
  for (; output != end; input += s.channels) {
    uint32_t pixel[4];
    tinyet_widen_dsp(pixel, input, s.channels, 1);
    const int32_t *w = weights;
    for (int32_t c = 0; c < s.outputs; c++) {
      int32_t sum = *w++;
      for (int32_t i = 0; i < pairs; i++) {
        sum = tinyet_smlad_dsp((uint32_t)*w++, pixel[i], sum);
      }
      const int32_t shift = s.rounding.form == TINYET_DSP_ONE_SIDED ? 0 : w[2];
      *output++ = tinyet_round_shifted_dsp(sum, w[0], w[1], shift, s.rounding);
      w += s.rounding.form == TINYET_DSP_ONE_SIDED ? 2 : 3;
    }
  }
}

#endif
