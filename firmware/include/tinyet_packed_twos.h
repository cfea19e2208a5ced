/* SPDX-License-Identifier: Apache-2.0 */
/* Two outputs in one multiplication of 32 bits, in runs so short that the weights of most layers allow them
 * everywhere: two or three taps of two output channels, or the taps of a row of two neighbouring pixels. What makes this exact
 * is proved for each layer when code is generated (tinyet/ops/shared/packed_twos.py). */
#ifndef TINYET_PACKED_TWOS_H
#define TINYET_PACKED_TWOS_H

#include "tinyet_packed_words.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Inputs are as they are. A run's sums a, b make a word 65536 b + a, whose lower half is a with its sign. The word is added
 * to one sum, b to another; what the first sum has too much is 65536 times the second.
 *
 * The stream of convolutions, for each block of four channels a, b, c, d (zeros where a channel is missing), modulo 2^32:
 *   5 words     sums before the first product, less where the channel's first output step begins: 65536 b + a, 65536 d + c,
 *               where M0's code goes on, b, d; in runs of three taps the first two less 2^15 for each run and each tap by
 *               itself, too
 *   runs        65536 b + a of a run's taps, and 65536 d + c of them; taps of zeros where their number is no multiple of it
 *   3 words     in runs of three taps, for each tap by itself: where its input lies in a window, in bytes; 65536 b + a,
 *               65536 d + c
 *   1 word      -1 behind them
 *   4 x 4 words limit, upper, lower, offset of d, b, a and c; 4 x 6 where two_sided: split, less, offset, limit, upper, lower
 * Behind the last block, and before one where a channel is missing, unless it is the first one:
 *   5 words     the third one where M0's code goes on then
 * right is 14, where two_sided 13. padding is what a tap outside the image reads. Taps of a window are in the order of its columns. */
typedef struct {
  tinyet_conv2d_shape shape;
  tinyet_packed_words words;
  int32_t run;   /* taps, two or three */
  int32_t runs;  /* of a window, taps of zeros among them */
  int32_t strip; /* neighbouring pixels whose windows are gathered at once */
} tinyet_conv2d_s8_packed_twos_params;

/* One group. scratch: a word for each input of the windows of a strip, and four more. */
void tinyet_conv2d_s8_packed_twos(const int8_t *input, int8_t *output, void *scratch,
                                  const tinyet_conv2d_s8_packed_twos_params *params);

/* 1x1, stride 1, no padding. */
void tinyet_conv2d_1x1_s8_packed_twos(const int8_t *input, int8_t *output, void *scratch,
                                      const tinyet_conv2d_s8_packed_twos_params *params);

/* Of depthwise layers: whether outputs, and taps of kernels, are taken down columns, or along rows, which are called lines.
 *
 * The stream, for each channel:
 *   1 word      sums before the first product, less where the first output step begins
 *   3 words     nine weights, line by line, a byte each, the first one in the lowest; then whether the three taps of a line are
 *               one run (0), or the first two and the third
 *   4 words     limit, upper, lower, offset
 *
 * groups == in_c == out_c, 3x3, no dilation; strides of 1 and 2 along lines, of 2 with a border of one before them at most.
 * scratch: lines of words, an image of one channel with its borders. A word has an input in its lower half and in the upper
 * one that a stride further on: of stride 1 all of them behind one word more, of stride 2 three of four, which is what
 * windows read. */
typedef struct {
  tinyet_conv2d_shape shape;
  tinyet_packed_words words;
  int32_t down;
} tinyet_depthwise_s8_chw_3x3_twos_params;

void tinyet_depthwise_s8_chw_3x3_twos(const int8_t *input, int8_t *output, void *scratch,
                                     const tinyet_depthwise_s8_chw_3x3_twos_params *params);

#ifdef __cplusplus
}
#endif

#endif
