/* SPDX-License-Identifier: Apache-2.0 */
/* int8 depthwise convolutions for cores with Helium, one channel after another, in bands of output rows.
 *
 * The channel's part of the image lies in scratch as a plane of bytes with its padding, beside that of the next channel. A gather takes up to sixteen bytes of it, a
 * "patch": all that one output sees (1), or two beside each other (2), or two by two (4); each output is the product of the patch
 * with its weights in their lanes, zeros in the others. Kernels of more than sixteen taps take two or three gathers an output.
 * Eight sums at a time go to scratch, and are requantized afterwards.
 *
 * For each channel the stream has multiplier, shift, bias, then its weights and zeros behind them. */
#ifndef TINYET_DEPTHWISE_MVE_H
#define TINYET_DEPTHWISE_MVE_H

#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t batch, in_h, in_w, in_c, out_h, out_w;
  int32_t out_pixel;        /* bytes from pixel to pixel of the output */
  int32_t stride_h, stride_w, pad_top, pad_left;
  int32_t zero_point;       /* of the input */
  int32_t band, band_in;    /* rows of a band of the output, and of what it sees */
  int32_t row;              /* bytes of a row of the plane */
  int32_t patch_h, patch_w; /* outputs of a patch, 1 or 2 */
  int32_t groups;           /* gathers of an output */
  int32_t tiles;            /* of eight outputs, of a band */
  int32_t stream;           /* bytes of a channel's */
  tinyet_rounding_mve rounding;
} tinyet_depthwise_shape_mve;

/* scratch: `tiles` times 2 * 8 / (patch_h * patch_w) addresses of patches (uint32_t), eight sums, as many offsets of outputs (uint16_t);
 * 2 bytes for each pixel of band_in rows of the image; band_in rows of two planes.
 * vectors: for each output of a patch, or for each group, which of a channel's weights is in each lane; then for each group the
 * offsets of its lanes in the plane. */
void tinyet_depthwise_s8_mve(const int8_t *input, int8_t *output, void *scratch, const int8_t *weights, const int8_t *vectors,
                             const tinyet_depthwise_shape_mve *shape);

#ifdef __cplusplus
}
#endif

#endif
