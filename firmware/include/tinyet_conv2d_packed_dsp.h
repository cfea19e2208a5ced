/* SPDX-License-Identifier: Apache-2.0 */
/* The int8 convolution of one group that all layers share, on cores with DSP instructions: see tinyet_dsp.h.
 *
 * 3x2, three output pixels by two output channels at a time: six sums in registers. The inputs of the three pixels are
 * widened to int16 once, into scratch, and serve all channels: for each pair of input values a word of each pixel. Pairs are those of
 * tinyet_widen_dsp, of the kernel_w * in_c neighbouring bytes of a kernel row; where it is dilated, of each tap's in_c.
 *
 * Weights are packed, two in one int16, 256 * b + a: multiplied by that, inputs add up to 256 * B + A, and by a alone,
 * which is its lower byte, to A. So one of the two channels needs no instruction to widen its weights.
 *
 * The weight stream, in words, for each pair of output channels a, b (the last pair overlaps the one before where out_c is
 * odd):
 *   bias of a, 256 * bias of b + bias of a | for each pair of input values (filled up to an even number) int16 of both
 *   channels | multiplier a, b | the bytes of a word: ONE_SIDED: shift of a, 8 - shift of b, 2^(shift of a - 2),
 *   2^(shift of b - 2) less the one before; TWO_SIDED: shift of a, of b, 0, 0 */
#ifndef TINYET_CONV2D_PACKED_DSP_H
#define TINYET_CONV2D_PACKED_DSP_H

#include "tinyet_conv2d_dsp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t batch;
  int32_t in_h, in_w, in_c;
  int32_t out_h, out_w, out_c;
  int32_t kernel_h, kernel_w;
  int32_t stride_h, stride_w;
  int32_t dilation_h, dilation_w;
  int32_t pad_top, pad_left;
  int32_t in_pixel_stride, out_pixel_stride; /* bytes from pixel to pixel; an in_pixel_stride above in_c only where kernel_w is 1 or dilated */
  int32_t in_zero_point;       /* what padding reads as */
  int32_t exponent;            /* E of ONE_SIDED; 0: TWO_SIDED */
  int32_t offset;              /* ONE_SIDED: 2^(E-1) + (zero_point << E); TWO_SIDED: 2 * zero_point + 1 */
  int32_t clamp_low, clamp_high;
  const int32_t *weights;
} tinyet_conv2d_s8_packed_3x2_dsp_params;

/* Needs three output pixels and two output channels. scratch: 12 bytes for each pair of input values that a pixel has, an even
 * number, and the words that hold in_c * kernel_w + 1 bytes. */
void tinyet_conv2d_s8_packed_3x2_dsp(const int8_t *input, int8_t *output, void *scratch,
                                     const tinyet_conv2d_s8_packed_3x2_dsp_params *params);

#ifdef __cplusplus
}
#endif

#endif
