/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of two pixels in one multiplication of 32 bits, one channel at a time, for cores with few registers for sums of
 * several. What makes this exact is proved for each layer when code is generated (tinyet/ops/shared/paired_channels.py), and so
 * are outputs of sums by two products of 32 bits. */
#ifndef TINYET_CONV2D_PAIRED_6X1_H
#define TINYET_CONV2D_PAIRED_6X1_H

#include "tinyet_packed_words.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A word 2^16 b + a of what two pixels see, times a weight, adds to both pixels' sums, in runs of taps: so many as cannot leave
 * 16 bits.
 * words.stream, for each channel: the sums of a pair before the first product, less where the channel's first output step
 * begins, 2^16 start + start, and start + runs; then what makes outputs of sums, as in tinyet_packed_words.h. Inputs are as they
 * are, without 128 more.
 * weights, for each channel: of each run four times the number of its taps, and their weights; zero behind the last. */
typedef struct {
  tinyet_conv2d_shape shape;
  tinyet_packed_words words;
  const TINYET_ROM int16_t *weights;
} tinyet_conv2d_s8_paired_runs_6x1_params;

enum { TINYET_PAIRED_6X1_LONGEST = 10 /* taps of a run */ };

/* One group. scratch: twelve bytes for each tap, and six for each output channel. */
void tinyet_conv2d_s8_paired_runs_6x1(const int8_t *input, int8_t *output, void *scratch,
                                      const tinyet_conv2d_s8_paired_runs_6x1_params *params);

#ifdef __cplusplus
}
#endif

#endif
