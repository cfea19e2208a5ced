/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of four pixels by four channels at a time, whose sums stay in registers, for cores with many of them and no
 * instruction for several products. */
#ifndef TINYET_CONV2D_4X4_H
#define TINYET_CONV2D_4X4_H

#include "tinyet_packed_words.h"

#ifdef __cplusplus
extern "C" {
#endif

/* words.stream has, for each block of four channels, their sums before the first product, and what makes outputs of sums, as
 * in tinyet_packed_words.h. Inputs are as they are, without 128 more. weights: [blocks][taps][4], taps rounded up to fours;
 * what is missing is zero. */
typedef struct {
  tinyet_conv2d_shape shape;
  tinyet_packed_words words;
  const TINYET_ROM int8_t *weights;
} tinyet_conv2d_s8_4x4_params;

/* One group. scratch: four bytes for each tap, rounded up to fours of them. */
void tinyet_conv2d_s8_4x4(const int8_t *input, int8_t *output, void *scratch,
                          const tinyet_conv2d_s8_4x4_params *params);

#ifdef __cplusplus
}
#endif

#endif
