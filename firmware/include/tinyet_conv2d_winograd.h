/* SPDX-License-Identifier: Apache-2.0 */
/* 3x3 convolutions of stride 1 by Winograd's F(4x4, 3x3) in integers, exact: a tile of 4x4 output pixels is made of 6x6 input
 * pixels by 36 products a pair of input and output channel instead of 144. docs/winograd.md has the proof, and
 * tinyet/ops/shared/winograd_words.py what is checked of each layer when code is generated. */
#ifndef TINYET_CONV2D_WINOGRAD_H
#define TINYET_CONV2D_WINOGRAD_H

#include "tinyet_conv2d.h"
#include "tinyet_one_product.h"

#ifdef __cplusplus
extern "C" {
#endif

/* stream, for each channel: 576 times its bias, modulo 2^32, minus the padding times the sum of its weights; multiplier, offset
 * and shift (tinyet_one_product.h), of 64 times a sum; what the lift of every other tile adds to its four last outputs, row by
 * row, with the opposite sign.
 * weights: transformed, [blocks of four channels][36 positions][in_c][4], zeros where channels are missing. */
typedef struct {
  tinyet_conv2d_shape shape;
  tinyet_one_product_outputs outputs;
  const TINYET_ROM int16_t *weights;
} tinyet_conv2d_s8_w16_winograd_f4x4_params;

/* weights: [blocks of four channels][in_c][9 taps][4], zeros where channels are missing; at_once: blocks that are transformed at
 * a time. */
typedef struct {
  tinyet_conv2d_shape shape;
  tinyet_one_product_outputs outputs;
  const TINYET_ROM int8_t *weights;
  int32_t at_once;
  int32_t kept; /* times four tiles, all of one image, whose transformed inputs stay in scratch; or zero: those of four tiles */
} tinyet_conv2d_s8_winograd_f4x4_params;

/* One group. scratch: 288 bytes for each input channel, and 2304. */
void tinyet_conv2d_s8_w16_winograd_f4x4(const int8_t *input, int8_t *output, void *scratch,
                                        const tinyet_conv2d_s8_w16_winograd_f4x4_params *params);

/* One group. scratch: 288 bytes for each input channel of four tiles, of all where they are kept, and of each block at once, and
 * 2304. */
void tinyet_conv2d_s8_winograd_f4x4(const int8_t *input, int8_t *output, void *scratch,
                                    const tinyet_conv2d_s8_winograd_f4x4_params *params);

#ifdef __cplusplus
}
#endif

#endif
