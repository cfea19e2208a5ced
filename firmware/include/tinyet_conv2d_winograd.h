/* SPDX-License-Identifier: Apache-2.0 */
/* 3x3 convolutions of stride 1 by Winograd's F(4x4, 3x3) in integers, exact: a tile of 4x4 output pixels is made of 6x6 input
 * pixels by 36 products a pair of input and output channel instead of 144. docs/winograd.md has the proof, and
 * tinyet/ops/shared/winograd_words.py what is checked of each layer when code is generated. */
#ifndef TINYET_CONV2D_WINOGRAD_H
#define TINYET_CONV2D_WINOGRAD_H

#include "tinyet_conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

/* stream: for each channel 576 times its bias, modulo 2^32, minus the padding times the sum of its weights; then multiplier,
 * offset and shift (tinyet_one_product.h), of 64 times a sum.
 * weights: transformed, [blocks of four channels][36 positions][in_c][4], zeros where channels are missing. */
typedef struct {
  tinyet_conv2d_shape shape;
  const TINYET_ROM uint32_t *stream;
  const TINYET_ROM int16_t *weights;
  int32_t padding; /* what a tap outside the image reads */
  int32_t two_sided;
  int32_t clamp_low, clamp_high;
} tinyet_conv2d_s8_winograd_f4x4_params;

/* One group. scratch: 288 bytes for each input channel, and 2304. */
void tinyet_conv2d_s8_winograd_f4x4(const int8_t *input, int8_t *output, void *scratch,
                                    const tinyet_conv2d_s8_winograd_f4x4_params *params);

#ifdef __cplusplus
}
#endif

#endif
