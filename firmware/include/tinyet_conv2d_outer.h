/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of three pixels and two channels in two multiplications, for cores that add a product of 64 bits in one
 * instruction: words 2^21 b + a and 2^21 c + b of what three pixels see, times a word 2^21 w + v of two weights, add to six
 * sums. What makes this exact is proved for each layer when code is generated (tinyet/ops/shared/outer_threes.py), and so is
 * what makes outputs of sums (tinyet_straight.h). */
#ifndef TINYET_CONV2D_OUTER_H
#define TINYET_CONV2D_OUTER_H

#include "tinyet_conv2d.h"
#include "tinyet_one_product.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each sum of 64 bits begins with 2^20 + 2^42 + 2^62: 2^20 for each of its four sums of products, of which the two in the
 * middle have one place. Taps are divided into parts, so many as cannot leave 21 bits; most layers have one.
 * stream, for each four channels, in the order of their weights: of each part eight times its taps, eight times the taps that
 * are left out of the first turn of 32, and what is done behind it, as tinyet_conv2d_s8_paired_threes_6x4_params has it;
 * then the words of each channel, as there. A direct tile may have 16 instead of 8, behind its last part if it has several: what
 * is added is then added to 2^9 times its sums, rather than 2^11. -1 behind all.
 * weights: [four channels][taps][2], of the first two channels and of the others; where channels are not a multiple of four, the
 * last is there several times. */
typedef struct {
  tinyet_conv2d_shape shape;
  tinyet_one_product_outputs outputs;
  const TINYET_ROM uint32_t *weights;
} tinyet_conv2d_s8_outer_threes_3x4_params;

/* One group. scratch: eight bytes for each tap, and three for each output channel. */
void tinyet_conv2d_s8_outer_threes_3x4(const int8_t *input, int8_t *output, void *scratch,
                                       const tinyet_conv2d_s8_outer_threes_3x4_params *params);

#ifdef __cplusplus
}
#endif

#endif
