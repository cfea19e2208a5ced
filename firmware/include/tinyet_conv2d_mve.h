/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of one group, of int8 or int16 by int8, for cores with Helium: four or three pixels by two output channels at a
 * time.
 *
 * A printed function (tinyet/tiles/helium_blocks.py, helium_straight.py, helium_blocks_s16.py) computes blocks of pixels side by side: the sums
 * of all channels, which wait in scratch, of each channel one a pixel, and are requantized four channels at a time. What is around it counts in bytes.
 * Pointwise, its inputs are the image itself. Otherwise rows of the image lie in scratch with their padding, a window that
 * moves down; of few channels, or pixels that are no multiple of four bytes, what each of four pixels sees is copied next to
 * it, without gaps ("patches").
 *
 * The stream: that of the printed function, behind it for each channel, rounded up to fours, multiplier and shift, of int16 the
 * multiplier alone, of sums that are rounded to even a float. Sums are of raw inputs: their zero point is in the bias. */
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
  int32_t pixels;
  int32_t free;   /* lanes whose inputs are constants */
} tinyet_sums_shape_mve;

/* See tinyet/tiles/helium_patches.py. */
typedef struct {
  int32_t rows, bytes, row, step, patch;
} tinyet_patches_shape_mve;

typedef struct {
  int32_t batch, in_h, in_w, in_c, out_h, out_w, out_c; /* in_c, out_c: bytes of a pixel */
  int32_t stride_h, pad_top, pad_left;
  int32_t step;            /* bytes from what a pixel sees to what the next one does */
  int32_t out_pixel;       /* bytes from pixel to pixel of the output */
  int32_t out_row;         /* and from row to row */
  int32_t zero_point;      /* of the input */
  int32_t groups;          /* of four channels, the last one filled up */
  int32_t channels;        /* bytes of these */
  int32_t ends;            /* bytes of the stream before multipliers and shifts */
  int32_t pixels;          /* of a block: 3 or 4; of patches 4 */
  int32_t seen;            /* pointwise: bytes of a block's pixels */
  int32_t window_rows;     /* rows of the window, at least what a kernel spans; 0: pointwise */
  int32_t row;             /* bytes of such a row; a multiple of four */
  int32_t span_h;          /* rows that a kernel spans */
  int32_t patch;           /* bytes of a pixel's patch; 0: none */
  int32_t kernel_h, dilation_h, taps, tap_bytes, tap_step; /* of patches: what they are copied from, `taps` a row */
  int32_t patches_bytes;   /* before the window */
  int32_t patch_blocks;    /* whose patches have room there */
  tinyet_rounding_mve rounding;
} tinyet_conv2d_shape_mve;

/* Blocks for the printed function, which counts in it. */
typedef struct {
  int32_t *sums;                      /* of a block */
  const int32_t *ends;                /* multipliers and shifts, of int16 multipliers, or floats */
  int8_t *to;                         /* where outputs go, words at multiples of four */
  int32_t zero_point, groups, low, high; /* groups: of four channels */
  int32_t step;                       /* bytes from pixel to pixel there */
  int32_t *sums_end;
  int32_t count;                      /* of blocks */
  int32_t block_in;                   /* bytes from one to the next, of what pixels see */
  int32_t behind;                     /* bytes from behind the channels of a block's first pixel to the next block */
  const tinyet_rounding_mve *rounding; /* for the reference */
} tinyet_blocks_mve;

/* How far a call is. */
typedef struct {
  tinyet_blocks_mve blocks;
  const tinyet_conv2d_shape_mve *shape;
  const int8_t *input;                     /* of the images from here on */
  int8_t *output, *to;                     /* of the row, of the pixels that are staged */
  int8_t *stage, *patches, *window;
  const int8_t *row, *near, *end;          /* what pixels see from near on is copied first, up to the end */
  int32_t window_first, window_behind;     /* rows of the padded image: the first there, and that behind the last one */
  int32_t images, y, x, count;             /* images: that are left; count: of a block's pixels */
  int32_t staged, copied;                  /* whether outputs of every block are copied, of this one */
  const int8_t *pixels;                    /* of patches: what the first of the next pixels sees */
  int8_t *patch;                           /* where the patches of the next `run` pixels go */
  int32_t run, whole;                      /* whole: these are all of the blocks */
} tinyet_conv2d_state_mve;

/* What the first pixels see, of patches nothing but NULL behind the last ones. The caller computes state->blocks from there; each
 * further call gives what the next ones see, or NULL.
 * scratch: sums and outputs of a block, pixels * (16 * groups + channels) bytes; patches_bytes; the window, and 16 bytes. */
const int8_t *tinyet_conv2d_begin_mve(tinyet_conv2d_state_mve *state, const int8_t *input, int8_t *output, void *scratch,
                                      const int8_t *weights, const tinyet_conv2d_shape_mve *shape);
const int8_t *tinyet_conv2d_next_mve(tinyet_conv2d_state_mve *state);

/* Of patches: before their blocks the caller makes those of state->run pixels, by a printed function or the one below, and asks
 * here, unless they are whole, whether others follow. */
int tinyet_conv2d_run_mve(tinyet_conv2d_state_mve *state);
void tinyet_conv2d_patches_mve(int8_t *to, const int8_t *from, int32_t count, const tinyet_conv2d_shape_mve *shape);

/* What printed functions compute, in C. */
void tinyet_patches_mve_reference(int8_t *to, const int8_t *from, int32_t count, const tinyet_patches_shape_mve *shape);
void tinyet_blocks_mve_reference(const int8_t *weights, const int8_t *pixels, tinyet_blocks_mve *blocks,
                                 const int32_t *taps, const tinyet_sums_shape_mve *shape);
void tinyet_blocks_rne_mve_reference(const int8_t *weights, const int8_t *pixels, tinyet_blocks_mve *blocks,
                                     const int32_t *taps, const tinyet_sums_shape_mve *shape);
void tinyet_blocks_s16_mve_reference(const int8_t *weights, const int8_t *pixels, tinyet_blocks_mve *blocks,
                                     const int32_t *taps, const tinyet_sums_shape_mve *shape, int32_t exponent);

#ifdef __cplusplus
}
#endif

#endif
