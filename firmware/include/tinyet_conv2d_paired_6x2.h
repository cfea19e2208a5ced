/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of three pixels in two multiplications of 32 bits, two channels at a time, for cores with few registers for sums
 * of several and no upper half of a product. What makes this exact is proved for each layer when code is generated
 * (tinyet/ops/shared/paired_threes.py), and so are outputs of sums by two products of 32 bits. */
#ifndef TINYET_CONV2D_PAIRED_6X2_H
#define TINYET_CONV2D_PAIRED_6X2_H

#include "tinyet_packed_words.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Inputs in words, and taps in parts, as tinyet_conv2d_s8_paired_threes_6x4 has them (tinyet_conv2d_paired.h).
 * words.stream, for each two channels: of each part four times the taps that are left out of the first turn of sixteen, four
 * times its taps, and a sum of 1 where it is not the first, 2 where it is not the last. Then of each channel what is added to
 * its sums, less where its first output step begins; which channel it is; and what makes outputs of sums, as in
 * tinyet_packed_words.h. -1 behind all. Inputs are as they are, without 128 more.
 * weights: [two channels][taps][2]; where channels are odd, the last is there twice. */
typedef struct {
  tinyet_conv2d_shape shape;
  tinyet_packed_words words;
  const TINYET_ROM int16_t *weights;
} tinyet_conv2d_s8_paired_threes_6x2_params;

/* One group. scratch: sixteen bytes for each tap, and six for each output channel. */
void tinyet_conv2d_s8_paired_threes_6x2(const int8_t *input, int8_t *output, void *scratch,
                                        const tinyet_conv2d_s8_paired_threes_6x2_params *params);

#ifdef __cplusplus
}
#endif

#endif
