/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions channel by channel, for cores with a product of 64 bits and many registers: nine weights stay in them,
 * and an output is the high half of one product. What makes this exact is proved for each layer when code is generated
 * (tinyet/ops/shared/depthwise_planes.py). */
#ifndef TINYET_DEPTHWISE_PLANES_H
#define TINYET_DEPTHWISE_PLANES_H

#include "tinyet_conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

/* weights, for each channel: nine, and the power of two by which sums are multiplied. stream, for each channel: the sum before
 * the first product, multiplied already, and the multiplier; where that sum does not make up for it in all channels, also the
 * offset and what is less where a sum is negative, both zero where it does. */
typedef struct {
  tinyet_conv2d_shape shape;
  const TINYET_ROM int32_t *stream;
  int32_t padding; /* what a tap outside the image reads */
  int32_t clamp_low, clamp_high;
  const TINYET_ROM int8_t *weights;
  int32_t words; /* of the stream, a channel: two or four */
} tinyet_depthwise_s8_chw_3x3_2x1_params;

/* The same with the weights of each window column by column. */
typedef tinyet_depthwise_s8_chw_3x3_2x1_params tinyet_depthwise_s8_cwh_3x3_2x1_params;

/* Three outputs of a channel in two words of inputs: three bands of the image, one below the other, as many rows of outputs
 * each, of which the last ones are in two bands where rows are no multiple of three. A word is 2^21 c + a of the bands' inputs
 * at one place, another 2^10 c + b; times weights they add up to the same of the sums (tinyet_conv2d_paired.h), which have
 * 21 bits. stream, for each channel: what 2^11 times a sum begins with, and the multiplier; weights: nine each. */
typedef struct {
  tinyet_conv2d_shape shape;
  const TINYET_ROM uint32_t *stream;
  int32_t padding; /* what a tap outside the image reads */
  int32_t clamp_low, clamp_high;
  const TINYET_ROM int8_t *weights;
} tinyet_depthwise_s8_chw_3x3_threes_params;

/* The same of five bands in three words, 2^19 d + a, 2^19 e + b and 2^12 e + 2^6 d + c, whose sums have 19 bits
 * (tinyet_conv2d_paired.h). stream, for each channel: what 2^12 times a sum begins with, and the multiplier. */
typedef tinyet_depthwise_s8_chw_3x3_threes_params tinyet_depthwise_s8_chw_3x3_fives_params;

/* groups == in_c == out_c, 3x3, no dilation, strides of columns 1 or 2, two outputs a row or more. scratch: eight bytes a pixel
 * of a band of one channel with its borders, and a row of the input. */
void tinyet_depthwise_s8_chw_3x3_threes(const int8_t *input, int8_t *output, void *scratch,
                                        const tinyet_depthwise_s8_chw_3x3_threes_params *params);

/* groups == in_c == out_c, 3x3, no dilation, windows that see a column of the image. scratch: twelve bytes a pixel of a band of
 * one channel with its borders, twenty a row of it, and a row of the input. */
void tinyet_depthwise_s8_chw_3x3_fives(const int8_t *input, int8_t *output, void *scratch,
                                       const tinyet_depthwise_s8_chw_3x3_fives_params *params);

/* groups == in_c == out_c, 3x3, no dilation. scratch: an image of four channels with its borders, a word a pixel, however many
 * channels there are. */
void tinyet_depthwise_s8_chw_3x3_2x1(const int8_t *input, int8_t *output, void *scratch,
                                     const tinyet_depthwise_s8_chw_3x3_2x1_params *params);

/* The same with planes whose rows are the image's columns. */
void tinyet_depthwise_s8_cwh_3x3_2x1(const int8_t *input, int8_t *output, void *scratch,
                                     const tinyet_depthwise_s8_cwh_3x3_2x1_params *params);

#ifdef __cplusplus
}
#endif

#endif
