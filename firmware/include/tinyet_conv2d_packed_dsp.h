/* SPDX-License-Identifier: Apache-2.0 */
/* The int8 convolution of one group that all layers share, on cores with DSP instructions: see tinyet_dsp.h.
 *
 * 3x2, three output pixels by two output channels at a time: six sums in registers. The inputs of the three pixels are
 * widened to int16 once, into scratch, and serve all channels: for each pair of input values a word of each pixel. Pairs are
 * those of tinyet_widen_dsp, of the kernel_w * in_c neighbouring bytes of a kernel row; where it is dilated, of each tap's in_c.
 * What widens rows, and what multiplies, rounds and stores, are functions that tinyet prints (tinyet/tiles/shared_rows.py,
 * shared.py), one of each for all layers.
 *
 * Weights are packed, two in one int16, 256 * b + a: multiplied by that, inputs add up to 256 * B + A, and by a alone,
 * which is its lower byte, to A. So one of the two channels needs no instruction to widen its weights.
 *
 * The weight stream, in words, for each pair of output channels a, b (the last pair overlaps the one before where out_c is
 * odd):
 *   bias of a, 256 * bias of b + bias of a | for each pair of input values (filled up to an even number) int16 of both
 *   channels | multiplier a, b | the bytes of a word: ONE_SIDED: shift of a, 8 - shift of b, 2^(shift of a - 2),
 *   2^(shift of b - 2) less the one before; TWO_SIDED: shift of a, of b, 0, 0 */
#ifndef TINYET_CONV2D_PACKED_DSP_H
#define TINYET_CONV2D_PACKED_DSP_H

#include "tinyet_conv2d_dsp.h"
#include "tinyet_tile_dsp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t batch;
  int32_t in_h, in_w, in_c;
  int32_t out_h, out_w, out_c;
  int32_t kernel_h, kernel_w;
  int32_t stride_h, stride_w;
  int32_t dilation_h, dilation_w;
  int32_t pad_top, pad_left;
  int32_t in_pixel_stride, out_pixel_stride; /* bytes from pixel to pixel; an in_pixel_stride above in_c only where kernel_w is 1 or dilated */
  int32_t in_zero_point;       /* what padding reads as */
  int32_t exponent;            /* E of ONE_SIDED; 0: TWO_SIDED */
  int32_t offset;              /* ONE_SIDED: 2^(E-1) + (zero_point << E); TWO_SIDED: 2 * zero_point + 1 */
  int32_t clamp_low, clamp_high;
  const int32_t *weights;
} tinyet_conv2d_s8_packed_3x2_dsp_params;

/* Needs three output pixels and two output channels. scratch: 12 bytes for each pair of input values that a pixel has, an even
 * number, and the words that hold in_c * kernel_w + 1 bytes. */
void tinyet_conv2d_s8_packed_3x2_dsp(const int8_t *input, int8_t *output, void *scratch,
                                     const tinyet_conv2d_s8_packed_3x2_dsp_params *params);

/* All channels of three pixels. */
typedef struct {
  const uint32_t *pixels;
  int32_t steps; /* two pairs of input values each */
  int8_t *output;
  int32_t step; /* bytes from pixel to pixel of the output */
  int32_t offset, exponent;
  const int8_t *last; /* where the output of the first pixel ends */
  const int32_t *weights;
} tinyet_three_pixels_dsp;

void tinyet_conv2d_packed_3x2_block_dsp(const tinyet_three_pixels_dsp *block);

/* Rows of so many bytes as words of pairs, into every third word; where the next one goes. step: bytes from the end of a
 * row's whole words to the next row. At least one row. */
uint32_t *tinyet_widened_rows_3_dsp(uint32_t *to, const int8_t *from, int32_t values, int32_t rows, int32_t step);

/* The same in C. */
TINYET_DSP_INLINE void tinyet_three_pixels_of_dsp(const tinyet_three_pixels_dsp *p) {
  const int one_sided = p->exponent != 0;
  const int32_t *w = p->weights;
  for (int8_t *out = p->output; out != p->last; out += 2) {
    int32_t sums[2][3] = {{w[0], w[0], w[0]}, {w[1], w[1], w[1]}};
    w += 2;
    for (const uint32_t *x = p->pixels; x != p->pixels + 6 * p->steps; x += 3) {
      const uint32_t both = (uint32_t)*w++, first = tinyet_even_bytes_dsp(both);
      for (int32_t j = 0; j < 3; j++) {
        sums[0][j] = tinyet_smlad_dsp(first, x[j], sums[0][j]);
        sums[1][j] = tinyet_smlad_dsp(both, x[j], sums[1][j]);
      }
    }
    for (int32_t k = 0; k < 2; k++) {
      const int32_t byte = w[2] >> (8 * k) & 0xff, shift = k == 1 && one_sided ? 8 - byte : byte;
      const int32_t offset = one_sided ? p->offset + (1 << (shift - 2)) : tinyet_shift_left(p->offset, shift) >> 1;
      for (int32_t j = 0; j < 3; j++) {
        const int32_t sum = k == 0 ? sums[0][j] : (int32_t)((uint32_t)sums[1][j] - (uint32_t)sums[0][j]) >> 8;
        const int32_t shifted = tinyet_shift_left(sum, one_sided ? shift : 1);
        const int32_t value = one_sided ? tinyet_smmla_dsp(shifted, w[k], offset) >> p->exponent
                                        : tinyet_smmlar_dsp(shifted, w[k], offset + (shifted >> 31)) >> shift;
        out[j * p->step + k] = (int8_t)tinyet_saturate_dsp(value);
      }
    }
    w += 3;
  }
}

TINYET_DSP_INLINE uint32_t *tinyet_widened_rows_of_dsp(uint32_t *to, const int8_t *from, int32_t values, int32_t rows,
                                                       int32_t step) {
  for (;; from += (values & ~3) + step) {
    tinyet_widen_dsp(to, from, values, 3);
    to += 3 * tinyet_int16x2_count_dsp(values);
    if (--rows == 0) {
      return to;
    }
  }
}

#ifdef __cplusplus
}
#endif

#endif
