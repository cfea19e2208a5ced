/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions, of int8 or int16 by int8, for cores with Helium, one channel after another, in bands of output rows.
 *
 * The channel's part of the image lies in scratch as a plane of bytes with its padding, beside that of the next channel. A gather
 * takes up to sixteen bytes of it, a "patch": all that one output sees (1), or two beside each other (2), or two by two (4); each
 * output is the product of the patch with its weights in their lanes, zeros in the others. Kernels of more than sixteen taps take
 * two or three gathers an output. A band is computed by a printed function (tinyet/tiles/helium_depthwise.py), eight outputs at a
 * time.
 *
 * For each channel the stream has multiplier, shift, bias, then its weights and zeros behind them. Of sums that are rounded to
 * even (tinyet_rne_mve.h) the multiplier is a float, the shift 0.
 *
 * With int16 activations a gather takes eight values, all that an output sees in as many gathers as that needs, or two outputs
 * beside each other in one or two. Of a channel there are multiplier and bias before the weights. */
#ifndef TINYET_DEPTHWISE_MVE_H
#define TINYET_DEPTHWISE_MVE_H

#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t bytes;            /* of a value */
  int32_t steps;            /* from one channel, or two that are taken at once, to the next */
  int32_t batch, in_h, in_w, in_c, out_h, out_w; /* in_c: bytes of a pixel */
  int32_t out_pixel;        /* bytes from pixel to pixel of the output */
  int32_t stride_h, stride_w, pad_top, pad_left; /* stride_w, pad_left: bytes of the plane */
  int32_t zero_point;       /* of the input */
  int32_t band, band_in;    /* rows of a band of the output, and of what it sees */
  int32_t row;              /* bytes of a row of the plane */
  int32_t patch_h, patch_w; /* outputs of a patch, 1 or 2 */
  int32_t groups;           /* gathers of an output */
  int32_t tiles;            /* of eight outputs, of a band */
  int32_t stream;           /* bytes of a channel's */
  int32_t planes;           /* channels that are taken at once: 2 where their number is even */
  tinyet_rounding_mve rounding;
} tinyet_depthwise_shape_mve;

/* A band, for the printed function, which counts in it. Its tiles, of a plane after another: addresses of their patches (offsets
 * in the planes where there are no instructions), then eight offsets of outputs (uint16_t). */
typedef struct {
  const int8_t *from;         /* the first of the pixels, of the next channel */
  int8_t *inside;             /* where its values go */
  const uint16_t *pixels;     /* where from there, of each */
  int32_t count;              /* of pixels */
  int32_t in_c, plane;        /* bytes of a pixel and of a plane */
  const int8_t *stream;       /* of the next channel */
  const int8_t *vectors;
  const uint8_t *tiles;
  int32_t table;              /* bytes of a plane's tiles */
  int8_t *output;             /* of the next channel */
  int32_t steps;              /* of one channel or two, that are left */
  int32_t zero_point, low, high; /* of the output */
  const uint8_t *end;         /* of the tiles */
  int32_t bias[8], rounding[4]; /* of a channel, while it is computed */
  const int8_t *planes;       /* for the reference, as all behind it */
  const tinyet_depthwise_shape_mve *shape;
} tinyet_depthwise_job_mve;

typedef struct {
  tinyet_depthwise_job_mve job;
  const int8_t *input, *weights; /* of the image */
  int8_t *output, *plane;
  int32_t first, images;         /* row of the next band; images that are left */
} tinyet_depthwise_state_mve;

/* The first band, and each further one, or NULL behind the last. Each is computed by the printed function before the next is asked
 * for.
 * scratch: for each plane, `tiles` times 8 / (patch_h * patch_w) addresses of patches (uint32_t) and eight offsets of outputs
 * (uint16_t); 2 bytes for each pixel of band_in rows of the image; band_in rows of each plane.
 * vectors: for each output of a patch, or for each group, which of a channel's weights is in each lane; then for each group the
 * offsets of its lanes in the plane, all in bytes; of int16 as uint16_t, the former only where a patch has two outputs, group
 * after group. */
tinyet_depthwise_job_mve *tinyet_depthwise_begin_mve(tinyet_depthwise_state_mve *state, const int8_t *input, int8_t *output,
                                                     void *scratch, const int8_t *weights, const int8_t *vectors,
                                                     const tinyet_depthwise_shape_mve *shape);
tinyet_depthwise_job_mve *tinyet_depthwise_next_mve(tinyet_depthwise_state_mve *state);

/* What printed functions compute, in C. */
void tinyet_depthwise_mve_reference(tinyet_depthwise_job_mve *job);
void tinyet_depthwise_rne_mve_reference(tinyet_depthwise_job_mve *job);
void tinyet_depthwise_s16_mve_reference(tinyet_depthwise_job_mve *job, int32_t exponent);

#ifdef __cplusplus
}
#endif

#endif
