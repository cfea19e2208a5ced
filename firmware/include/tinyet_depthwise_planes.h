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

/* stream, for each channel: the sum before the first product and nine weights, both times a power of two; between them the
 * multiplier, the offset, and what is less where a sum is negative: both zero where the sum before the first product makes up
 * for them. */
typedef struct {
  tinyet_conv2d_shape shape;
  const TINYET_ROM int32_t *stream;
  int32_t padding; /* what a tap outside the image reads */
  int32_t clamp_low, clamp_high;
} tinyet_depthwise_s8_chw_3x3_2x1_params;

/* The same with the weights of each window column by column. */
typedef tinyet_depthwise_s8_chw_3x3_2x1_params tinyet_depthwise_s8_cwh_3x3_2x1_params;

/* groups == in_c == out_c, 3x3, no dilation. scratch: an image of one channel with its borders, a byte a pixel; of
 * four where channels are a multiple of four. */
void tinyet_depthwise_s8_chw_3x3_2x1(const int8_t *input, int8_t *output, void *scratch,
                                     const tinyet_depthwise_s8_chw_3x3_2x1_params *params);

/* The same with planes whose rows are the image's columns. */
void tinyet_depthwise_s8_cwh_3x3_2x1(const int8_t *input, int8_t *output, void *scratch,
                                     const tinyet_depthwise_s8_cwh_3x3_2x1_params *params);

#ifdef __cplusplus
}
#endif

#endif
