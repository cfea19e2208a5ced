/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised convolutions of one group with int16 activations for cores with DSP instructions: see tinyet_s16_dsp.h, and
 * tinyet_conv2d_dsp.h, whose lanes and multiply loop they have. Nothing is widened; pairs of channels are neighbours.
 *
 * Sums are in 32 bits where the weights prove that these are enough. Where they are not, the lanes are divided into `parts`
 * with sums of their own, and what is added up, in 64 bits, is their products with the multiplier.
 *
 * The weight stream, in words, for each pair of output channels a, b (b has zeros where out_c is odd):
 *   for each part: bias a, b, zero but for the first one, | for each lane, for each tap: bytes {a0, b0, a1, b1}, or int16
 *   {a0, a1} and {b0, b1}: two words a tap | multiplier a, b */
#ifndef TINYET_CONV2D_S16_DSP_H
#define TINYET_CONV2D_S16_DSP_H

#include "tinyet_conv2d_dsp.h"
#include "tinyet_s16_dsp.h"

/* Adds products of sums with the multipliers of channels a and b to what four pixels have of each. */
TINYET_DSP_INLINE void tinyet_add_products_dsp(int64_t totals[8], const tinyet_sums_dsp c, int32_t ma, int32_t mb) {
  totals[0] += (int64_t)c.a0 * ma;
  totals[1] += (int64_t)c.a1 * ma;
  totals[2] += (int64_t)c.a2 * ma;
  totals[3] += (int64_t)c.a3 * ma;
  totals[4] += (int64_t)c.b0 * mb;
  totals[5] += (int64_t)c.b1 * mb;
  totals[6] += (int64_t)c.b2 * mb;
  totals[7] += (int64_t)c.b3 * mb;
}

/* Two channels of four pixels, which lie `step` values apart in the output; only channel a where `pair` is 0. g: of a part. */
TINYET_DSP_INLINE const int32_t *tinyet_channels_s16_dsp(const int32_t *w, const uint32_t *pixels, int16_t *out,
                                                         const int32_t step, const int pair, const int32_t parts,
                                                         const tinyet_lanes_dsp g,
                                                         const tinyet_rounding_s16_dsp rounding) {
  if (parts == 1) {
    const tinyet_sums_dsp c = tinyet_dot_dsp(&w, pixels, g);
    const int32_t ma = w[0], mb = w[1];
    tinyet_store_s16_dsp(out, tinyet_round_s16_dsp(c.a0, ma, rounding));
    tinyet_store_s16_dsp(out + step, tinyet_round_s16_dsp(c.a1, ma, rounding));
    tinyet_store_s16_dsp(out + 2 * step, tinyet_round_s16_dsp(c.a2, ma, rounding));
    tinyet_store_s16_dsp(out + 3 * step, tinyet_round_s16_dsp(c.a3, ma, rounding));
    if (pair) {
      tinyet_store_s16_dsp(out + 1, tinyet_round_s16_dsp(c.b0, mb, rounding));
      tinyet_store_s16_dsp(out + step + 1, tinyet_round_s16_dsp(c.b1, mb, rounding));
      tinyet_store_s16_dsp(out + 2 * step + 1, tinyet_round_s16_dsp(c.b2, mb, rounding));
      tinyet_store_s16_dsp(out + 3 * step + 1, tinyet_round_s16_dsp(c.b3, mb, rounding));
    }
    return w + 2;
  }
  const int32_t words = 2 + g.lanes * g.taps * (g.weights == TINYET_DSP_INT16 ? 2 : 1);
  const int32_t ma = w[parts * words], mb = w[parts * words + 1];
  int64_t totals[8];
  for (int32_t i = 0; i < 8; i++) {
    totals[i] = tinyet_half_s16_dsp(rounding);
  }
  for (int32_t part = 0; part < parts; part++, pixels += g.lanes * g.width) {
    TINYET_DSP_UNKNOWN(part);
    tinyet_add_products_dsp(totals, tinyet_dot_dsp(&w, pixels, g), ma, mb);
  }
  for (int32_t i = 0; i < 4; i++) {
    tinyet_store_s16_dsp(out + i * step, tinyet_clamp_s16_dsp((int32_t)(totals[i] >> 32), rounding));
    if (pair) {
      tinyet_store_s16_dsp(out + i * step + 1, tinyet_clamp_s16_dsp((int32_t)(totals[4 + i] >> 32), rounding));
    }
  }
  return w + 2;
}

/* All channels of four pixels. g: of all parts. */
TINYET_DSP_INLINE void tinyet_four_pixels_s16_dsp(const int32_t *w, const uint32_t *pixels, int16_t *out,
                                                  const int32_t out_c, const int32_t parts, const tinyet_lanes_dsp g,
                                                  const tinyet_rounding_s16_dsp rounding) {
  tinyet_lanes_dsp part = g;
  part.lanes = g.lanes / parts;
  for (const int16_t *const end = out + (out_c & ~1); out != end; out += 2) {
    w = tinyet_channels_s16_dsp(w, pixels, out, out_c, 1, parts, part, rounding);
  }
  if (out_c & 1) {
    (void)tinyet_channels_s16_dsp(w, pixels, out, out_c, 0, parts, part, rounding);
  }
}

/* Columns shared by the four pixels: needs out_w >= 4, and stride_w or dilation_w of 1. Where out_w is no multiple of 4, the
 * last four pixels of a row overlap those before. scratch: 4 * lanes * width bytes. kind: TINYET_DSP_INT8 or TINYET_DSP_INT16. */
TINYET_DSP_INLINE void tinyet_conv2d_s16_direct_4x2_dsp(const int16_t *input, int16_t *output, void *scratch,
                                                        const int32_t *weights, const int32_t kind, const int32_t parts,
                                                        const tinyet_conv2d_shape_dsp s, const tinyet_rounding_s16_dsp rounding) {
  const int32_t pairs = (s.in_c + 1) / 2;
  const int32_t reach = (s.kernel_w - 1) * s.dilation_w;
  const int32_t run = reach / s.stride_w + 4;
  const int32_t runs = s.stride_w < reach + 1 ? s.stride_w : reach + 1;
  const int32_t width = runs * run;
  const tinyet_lanes_dsp g = {s.kernel_h * pairs, s.kernel_w, s.stride_w, s.dilation_w, run, width, s.unroll, kind};
  uint32_t *const pixels = (uint32_t *)scratch;
  for (int32_t n = 0; n < s.batch; n++) {
    for (int32_t oy = 0; oy < s.out_h; oy++) {
      for (int32_t ox = 0; ox < s.out_w; ox += 4) {
        if (s.out_w % 4 != 0 && ox > s.out_w - 4) {
          ox = s.out_w - 4;
        }
        uint32_t *to = pixels;
        for (int32_t ky = 0; ky < s.kernel_h; ky++) {
          const int32_t y = oy * s.stride_h - s.pad_top + ky * s.dilation_h;
          for (int32_t f = 0; f < runs; f++) {
            const int32_t used = (reach - f) / s.stride_w + 4;
            for (int32_t i = 0; i < used; i++) {
              const int32_t x = ox * s.stride_w - s.pad_left + f + i * s.stride_w;
              if ((uint32_t)y < (uint32_t)s.in_h && (uint32_t)x < (uint32_t)s.in_w) {
                tinyet_put_int16x2_dsp(to + f * run + i, input + (y * s.in_w + x) * s.in_c, s.in_c, width);
              } else {
                tinyet_fill_dsp(to + f * run + i, 0, pairs, width);
              }
            }
          }
          to += pairs * width;
        }
        tinyet_four_pixels_s16_dsp(weights, pixels, output + (oy * s.out_w + ox) * s.out_c, s.out_c, parts, g,
                                   rounding);
      }
    }
    input += s.in_h * s.in_w * s.in_c;
    output += s.out_h * s.out_w * s.out_c;
  }
}

/* A kernel row that lies partly outside the image. */
TINYET_DSP_INLINE void tinyet_edge_s16_dsp(int16_t *to, const int16_t *image_row, const int32_t left,
                                           const tinyet_conv2d_shape_dsp s) {
  const int32_t right = left + s.kernel_w;
  const int32_t first = left < 0 ? 0 : left, end = right > s.in_w ? s.in_w : right;
  memset(to, 0, (size_t)(2 * s.kernel_w * s.in_c));
  if (first < end) {
    memcpy(to + (first - left) * s.in_c, image_row + first * s.in_c, (size_t)(2 * (end - first) * s.in_c));
  }
}

/* All that the kernel sees of one pixel, into every fourth word. */
TINYET_DSP_INLINE void tinyet_im2col_s16_dsp(uint32_t *to, const int16_t *input, const int32_t top, const int32_t left,
                                             int16_t *edge, const tinyet_conv2d_shape_dsp s) {
  const int32_t together = s.dilation_w == 1 ? s.kernel_w : 1; /* taps */
  const int32_t pairs = (together * s.in_c + 1) / 2, row_pairs = s.kernel_w / together * pairs;
  for (int32_t ky = 0; ky < s.kernel_h; ky++, to += 4 * row_pairs) {
    const int32_t y = top + ky * s.dilation_h;
    if ((uint32_t)y >= (uint32_t)s.in_h) {
      tinyet_fill_dsp(to, 0, row_pairs, 4);
      continue;
    }
    const int16_t *const row = input + y * s.in_w * s.in_c;
    if (s.dilation_w == 1) {
      const int16_t *from = edge;
      if (left < 0 || left + s.kernel_w > s.in_w) {
        tinyet_edge_s16_dsp(edge, row, left, s);
      } else {
        from = row + left * s.in_c;
      }
      tinyet_put_int16x2_dsp(to, from, s.kernel_w * s.in_c, 4);
      continue;
    }
    for (int32_t kx = 0; kx < s.kernel_w; kx++) {
      const int32_t x = left + kx * s.dilation_w;
      if ((uint32_t)x < (uint32_t)s.in_w) {
        tinyet_put_int16x2_dsp(to + 4 * pairs * kx, row + x * s.in_c, s.in_c, 4);
      } else {
        tinyet_fill_dsp(to + 4 * pairs * kx, 0, pairs, 4);
      }
    }
  }
}

/* Any four pixels that follow each other in the output; needs four of them. The lanes of a kernel row are pairs of its kernel_w * in_c
 * neighbours (with pixels in_c apart, or a kernel_w of 1); where it is dilated, pairs of channels, tap by tap. scratch: 16 bytes a
 * lane. */
TINYET_DSP_INLINE void tinyet_conv2d_s16_im2col_4x2_dsp(const int16_t *input, int16_t *output, void *scratch,
                                                        const int32_t *weights, const int32_t kind, const int32_t parts,
                                                        const tinyet_conv2d_shape_dsp s,
                                                        const tinyet_rounding_s16_dsp rounding) {
  const int32_t together = s.dilation_w == 1 ? s.kernel_w : 1; /* taps */
  const int32_t row_pairs = s.kernel_w / together * ((together * s.in_c + 1) / 2), count = s.out_h * s.out_w;
  const tinyet_lanes_dsp g = {s.kernel_h * row_pairs, 1, 1, 1, 4, 4, s.unroll, kind};
  uint32_t *const pixels = (uint32_t *)scratch;
  int16_t *const edge = (int16_t *)(pixels + 4 * g.lanes);
  for (int32_t n = 0; n < s.batch; n++) {
    for (int32_t first = 0; first < count; first += 4) {
      if (count % 4 != 0 && first > count - 4) {
        first = count - 4;
      }
      for (int32_t j = 0; j < 4; j++) {
        tinyet_im2col_s16_dsp(pixels + j, input, (first + j) / s.out_w * s.stride_h - s.pad_top,
                              (first + j) % s.out_w * s.stride_w - s.pad_left, edge, s);
      }
      tinyet_four_pixels_s16_dsp(weights, pixels, output + first * s.out_c, s.out_c, parts, g, rounding);
    }
    input += s.in_h * s.in_w * s.in_c;
    output += count * s.out_c;
  }
}

#endif
