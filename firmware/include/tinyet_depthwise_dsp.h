/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised depthwise convolutions with activations of int8 or int16 for cores with DSP instructions, on planes of int16: see
 * tinyet_depthwise_chw_dsp.h.
 * Output rows are computed by a printed function: of 3x3 (tinyet_depthwise_rows_dsp.h: dilation_u 1, stride_u 1 or 2,
 * multiplier 1), or of any size (tinyet_depthwise_windows_dsp.h). */
#ifndef TINYET_DEPTHWISE_DSP_H
#define TINYET_DEPTHWISE_DSP_H

#include "tinyet_depthwise_chw_dsp.h"

/* A printed function (tinyet/tiles): the weights of some channels, their planes, the outputs of the first one, and where in the
 * first plane the input rows end that a turn of its loop over output rows begins with. */
typedef void (*tinyet_depthwise_function_dsp)(const int32_t *weights, const uint32_t *planes, void *output,
                                              const uint32_t *end);

/* A group of channels, of the tile of output rows from `top` on. With a multiplier, a call is for the outputs of one plane. */
TINYET_DSP_INLINE void tinyet_depthwise_tile_dsp(const int8_t *input, int8_t *output, uint32_t *planes,
                                                 const int32_t *weights, int32_t channel, int32_t top,
                                                 const int32_t words, const int32_t together,
                                                 const tinyet_planes_function_dsp fill,
                                                 const tinyet_depthwise_function_dsp rows,
                                                 const tinyet_depthwise_shape_dsp s) {
  const int32_t turns = tinyet_rows_left_dsp(top, s) / together, row = tinyet_row_words_dsp(s);
  const int32_t calls = s.multiplier > 1 ? s.group : 1;
  tinyet_fill_planes_dsp(planes, input + channel * s.size, top, fill, s);
  for (int32_t k = 0; k < calls; k++) {
    const int32_t first = (channel + k) * s.multiplier;
    const uint32_t *const plane = planes + k * tinyet_plane_words_dsp(s);
    rows(weights + first * words, plane, output + top * s.out_step_v + tinyet_out_byte_dsp(first, s),
         plane + turns * together * s.stride_v * row);
  }
}

/* words: of the weights of an output channel. together: output rows of a turn of `rows`. scratch: 4 * group *
 * tinyet_plane_words_dsp bytes. Needs as many channels as a group has; where the last group has fewer,
 * those before are computed twice. */
TINYET_DSP_INLINE void tinyet_depthwise_dsp(const void *image, void *outputs, void *scratch, const int32_t *weights,
                                            const int32_t words, const int32_t together,
                                            const tinyet_planes_function_dsp fill,
                                            const tinyet_depthwise_function_dsp rows,
                                            const tinyet_depthwise_shape_dsp s) {
  const int8_t *input = (const int8_t *)image;
  int8_t *output = (int8_t *)outputs;
  uint32_t *const planes = (uint32_t *)scratch;
  tinyet_blank_planes_dsp(planes, s);
  for (int32_t n = 0; n < s.batch; n++) {
    TINYET_DSP_OVER_TILES(
        s, tinyet_depthwise_tile_dsp(input, output, planes, weights, channel, top, words, together, fill, rows, s))
    input += s.in_u * s.in_v * tinyet_pixel_stride_dsp(s.in_step_u, s.in_step_v);
    output +=
        s.pairs ? s.out_v * s.out_step_v : s.out_u * s.out_v * tinyet_pixel_stride_dsp(s.out_step_u, s.out_step_v);
  }
}

#endif
