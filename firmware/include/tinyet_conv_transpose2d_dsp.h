/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised int8 transposed convolutions of one group for cores with DSP instructions: see tinyet_conv2d_tiles_dsp.h, whose printed
 * functions these are.
 *
 * Polyphase: output rows and columns that are equal modulo the stride read the input through the same taps. Each such phase is an
 * ordinary convolution of stride 1. A cell is the outputs, one of each phase, that see the same inputs, stride_h rows of stride_w;
 * cells at an edge may be cropped. What neighbouring cells see, as many as a tile has pixels, is gathered once for all phases, of which
 * the tile computes these pixels each.
 *
 * All phases have as many taps as the largest one, zeros where they have fewer, so that they share their code; the weight stream
 * holds that of one phase after another, by rows of a cell. */
#ifndef TINYET_CONV_TRANSPOSE2D_DSP_H
#define TINYET_CONV_TRANSPOSE2D_DSP_H

#include "tinyet_conv2d_tiles_dsp.h"

/* Literals. */
typedef struct {
  int32_t rows, columns; /* how many */
  int32_t top, left;     /* the place in the image where the first one's window begins */
  int32_t words;         /* of the weights of a phase */
} tinyet_cells_dsp;

/* What the windows of two neighbouring cells see, gathered; windows that reach out of the image lie in `padded` before. */
TINYET_DSP_INLINE void tinyet_two_cells_dsp(uint32_t *pixels, int8_t *padded, const int8_t *input, const int32_t top,
                                            const int32_t left, const int inside, const tinyet_conv2d_shape_dsp s,
                                            const tinyet_tiles_dsp tiles) {
  if (inside || (top >= 0 && top + s.kernel_h <= s.in_h && left >= 0 && left + s.kernel_w < s.in_w)) {
    const int8_t *const first = input + (top * s.in_w + left) * s.in_pixel_stride;
    tiles.see_two(first, first + s.in_pixel_stride, pixels, s.in_w * s.in_pixel_stride);
  } else {
    const int32_t columns = s.kernel_w + 1;
    tinyet_padded_dsp(padded, columns, input, top, left, s.kernel_h, 1, columns, s);
    tiles.see_two(padded, padded + s.in_c, pixels, columns * s.in_c);
  }
}

/* Needs as many output columns of each phase as a tile has pixels; where they are no multiple, or the first cell lacks one, pixels
 * overlap those before. s: of a phase's kernel; its padding is how many rows and columns the first cell lacks. scratch: 4 bytes a pair
 * of input values and pixel, and where windows reach out of the image those of two cells. */
TINYET_DSP_INLINE void tinyet_conv_transpose2d_tiles_dsp(const int8_t *input, int8_t *output, void *scratch, const int32_t *weights,
                                                         const tinyet_conv2d_shape_dsp s, const tinyet_rounding_dsp rounding,
                                                         const tinyet_tiles_dsp tiles, const tinyet_cells_dsp cells) {
  const int inside = cells.top >= 0 && cells.top + cells.rows - 1 + s.kernel_h <= s.in_h && cells.left >= 0 &&
                     cells.left + cells.columns - 1 + s.kernel_w <= s.in_w;
  uint32_t *const pixels = (uint32_t *)scratch;
  int8_t *const padded = (int8_t *)(pixels + tiles.pixels * tiles.pairs);
  for (int32_t n = 0; n < s.batch; n++) {
    for (int32_t row = 0; row < cells.rows; row++) {
      const int32_t above = row * s.stride_h - s.pad_top; /* the output row of the first phase */
      const int32_t first_y = above < 0 ? -above : 0, end_y = s.out_h - above < s.stride_h ? s.out_h - above : s.stride_h;
      for (int32_t column = 0; column < cells.columns; column += tiles.pixels) {
        int32_t gathered = -1;
        for (int32_t phase_x = 0; phase_x < s.stride_w; phase_x++) {
          const int32_t first = phase_x < s.pad_left; /* cell that has such a column, and behind the last one */
          const int32_t end = (s.out_w - 1 + s.pad_left - phase_x) / s.stride_w + 1, last = end - tiles.pixels;
          const int32_t at = column < first ? first : column < last ? column : last;
          if (column >= end) {
            continue;
          }
          if (at != gathered) {
            for (int32_t i = 0; i < tiles.pixels; i += 2) {
              tinyet_two_cells_dsp(pixels + i * tiles.pairs, padded, input, cells.top + row, cells.left + at + i, inside, s, tiles);
            }
            gathered = at;
          }
          int8_t *const out = output + (at * s.stride_w - s.pad_left + phase_x) * s.out_pixel_stride;
          for (int32_t phase_y = first_y; phase_y < end_y; phase_y++) {
            tinyet_outputs_of_tile_dsp(tiles.several, weights + (phase_y * s.stride_w + phase_x) * cells.words, pixels,
                                       out + (above + phase_y) * s.out_w * s.out_pixel_stride, tiles, s);
          }
        }
      }
    }
    input += s.in_h * s.in_w * s.in_pixel_stride;
    output += s.out_h * s.out_w * s.out_pixel_stride;
  }
  tinyet_clamp_pixels_dsp(output, s, rounding);
}

#endif
