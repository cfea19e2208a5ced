/* SPDX-License-Identifier: Apache-2.0 */
/* int8 convolutions of one group for cores with Helium: four pixels by two output channels at a time.
 *
 * The products are a printed function (tinyet/tiles/helium.py), which makes the sums of all channels of four pixels; they wait in
 * scratch, of each channel four, and are requantized four channels at a time. Pointwise, its inputs are the image itself.
 * Otherwise rows of the image lie in scratch with their padding, a window that moves down; of few channels, or channels that are
 * no multiple of four, what each of the four pixels sees is copied next to it, without gaps ("patches").
 *
 * The stream: that of the printed function, behind it for each channel, rounded up to fours, multiplier and shift. Sums are of
 * raw inputs: their zero point is in the bias. */
#ifndef TINYET_CONV2D_MVE_H
#define TINYET_CONV2D_MVE_H

#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* See tinyet/tiles/helium.py. */
typedef struct {
  int32_t rows, columns, depth, row, column, step;
  int32_t chunks; /* whose sizes are behind the taps; 0: inputs are not held */
} tinyet_sums_shape_mve;

/* See tinyet/tiles/helium_patches.py. */
typedef struct {
  int32_t rows, bytes, row, step, patch;
} tinyet_patches_shape_mve;

typedef struct {
  int32_t batch, in_h, in_w, in_c, out_h, out_w, out_c;
  int32_t stride_h, pad_top, pad_left;
  int32_t step;            /* bytes from what a pixel sees to what the next one does */
  int32_t out_pixel;       /* bytes from pixel to pixel of the output */
  int32_t zero_point;      /* of the input */
  int32_t channels;        /* out_c rounded up to a multiple of four */
  int32_t ends;            /* bytes of the stream before multipliers and shifts */
  int32_t seen;            /* pointwise: bytes of four pixels */
  int32_t window_rows;     /* rows of the window, at least what a kernel spans; 0: pointwise */
  int32_t row;             /* bytes of such a row; a multiple of four */
  int32_t span_h;          /* rows that a kernel spans */
  int32_t patch;           /* bytes of a pixel's patch; 0: none */
  int32_t kernel_h, dilation_h, taps, tap_bytes, tap_step; /* of patches: what they are copied from, `taps` a row */
  int32_t patches_bytes;   /* before the window */
  tinyet_rounding_mve rounding;
} tinyet_conv2d_shape_mve;

/* Rounding of four pixels. groups: of four channels; step: bytes from pixel to pixel where they go, a multiple of four. */
typedef struct {
  int32_t zero_point, groups, low, high, step;
} tinyet_pixels_rounding_mve;

/* How far a call is. */
typedef struct {
  int32_t *sums, *sums_end;                /* of four pixels, what the printed function makes */
  const tinyet_conv2d_shape_mve *shape;
  const int32_t *ends;                     /* multipliers and shifts */
  const int8_t *input, *input_end;         /* of the images from here on */
  int8_t *output, *to;                     /* of the row, of the four pixels */
  int8_t *stage, *patches, *window;
  const int8_t *row, *near, *end;          /* what pixels see from near on is copied first, up to the end */
  int32_t window_first, window_behind;     /* rows of the padded image: the first there, and that behind the last one */
  int32_t images, y, x, count, staged;     /* images: that are left; count: of the pixels; staged: they are copied */
  const int8_t *pixels;                    /* what the first of the pixels sees, in the image or in the window */
  int8_t *patch;                           /* where the patches of the next `run` pixels go */
  int32_t run, whole;                      /* whole: these are all four */
  int32_t plain, four_in, four_out;        /* blocks of four that follow in a row, and the bytes to the next one */
  int32_t form;                            /* of rounding: 1 two-sided, 2 clamped */
  tinyet_pixels_rounding_mve rounding;
} tinyet_conv2d_state_mve;

/* What the first four pixels see, of patches the first one. Their sums are made by the caller; each further call makes outputs of
 * these, and gives what the next four see, or NULL behind the last ones.
 * scratch: sums and outputs of four pixels, 20 * channels bytes; patches_bytes; the window, and 16 bytes. */
const int8_t *tinyet_conv2d_begin_mve(tinyet_conv2d_state_mve *state, const int8_t *input, int8_t *output, void *scratch,
                                      const int8_t *weights, const tinyet_conv2d_shape_mve *shape);
const int8_t *tinyet_conv2d_next_mve(tinyet_conv2d_state_mve *state);

/* Of patches: before their sums the caller makes those of state->run pixels, by a printed function or the one below, and asks here,
 * unless they are whole, whether others follow. */
int tinyet_conv2d_run_mve(tinyet_conv2d_state_mve *state);
void tinyet_conv2d_patches_mve(int8_t *to, const int8_t *from, int32_t count, const tinyet_conv2d_shape_mve *shape);

/* What printed functions compute, in C. */
void tinyet_patches_mve_twin(int8_t *to, const int8_t *from, int32_t count, const tinyet_patches_shape_mve *shape);
void tinyet_sums_mve_twin(const int8_t *weights, const int8_t *pixels, int32_t *sums, const int32_t *end, const int32_t *taps,
                          const tinyet_sums_shape_mve *shape);

#ifdef __cplusplus
}
#endif

#endif
