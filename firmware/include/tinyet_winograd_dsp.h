/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd convolutions F(2x2, 3x3) and F(4x4, 3x3) of stride 1 for cores with DSP instructions, exact in integers: see
 * tinyet_dsp.h, and docs/winograd.md for the proof.
 *
 * A tile of 2x2 (4x4) output pixels is made of 4x4 (6x6) input pixels by 16 (36) products a pair of input and output channel
 * instead of 36 (144). Inputs are transformed here, weights were ahead of time. Four tiles by two output channels are
 * multiplied at a time, by a printed function (tinyet/tiles/products.py). Tiles at the right and lower edges overlap those before, so that none
 * reaches beyond the output; the four last are filled up with the last one.
 *
 * Scratch, in words, position by position of the transformed tile: for each pair of input channels that of the four tiles;
 * then the eight sums of two output channels, a0 ... a3, b0 ... b3. Input channels are paired as in tinyet_widen_dsp, and
 * filled up to a multiple of four.
 *
 * The weight stream, in words, for each pair of output channels a, b (b has zeros where out_c is odd):
 *   for each position: start a, b, and for each pair of input channels its weights for a, and for b |
 *   for 4x4 factor a, b | multiplier a, b | offset a, b | shift a, b
 * Sums are 4 (576) times too large. Modulo 2^32 the factor, an inverse of 9, leaves a power of two of that, which one-sided
 * rounding wants to have before its multiplication; what it wants beyond is in the factor, and for 2x2 in the weights. */
#ifndef TINYET_WINOGRAD_DSP_H
#define TINYET_WINOGRAD_DSP_H

#include "tinyet_tile_dsp.h"

/* What a specialised convolution is made for; literals. Strides and dilations are 1. */
typedef struct {
  int32_t batch, in_h, in_w, in_c;
  int32_t out_h, out_w, out_c;
  int32_t pad_top, pad_left;
  int32_t in_pixel_stride, out_pixel_stride; /* bytes from pixel to pixel: the channels, and what else lies between */
  int32_t zero_point;          /* what padding reads as */
} tinyet_winograd_shape_dsp;

/* Added to the lower half of a pair before F(4x4): keeps that between 0 and 2^15 - 1, so that nothing is carried from it to
 * the upper half, and both are computed by plain instructions. The stream's starts take it away again. */
enum { TINYET_DSP_LIFT = 12800 };

#define TINYET_DSP_FORGET() __asm__ volatile("" ::: "memory")

#if TINYET_DSP_ASM
#define TINYET_DSP_WINOGRAD_LOST "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "memory", "cc"
/* A position of two tiles, and on to the next one. */
#define TINYET_DSP_TWO_TILES(A, B)           \
  ".if %c[step] < 1024\n"                    \
  "ldrd " A ", " B ", [r10], #%c[step]\n"    \
  ".else\n"                                  \
  "ldrd " A ", " B ", [r10]\n"               \
  "addw r10, r10, #%c[step]\n"               \
  ".endif\n"
#endif

/* ---- F(2x2, 3x3) ---- */

/* Four input pixels in a row or column, of a pair of channels. */
TINYET_DSP_INLINE void tinyet_winograd_f2x2_inputs_dsp(uint32_t *to, const int32_t step, uint32_t d0, uint32_t d1,
                                                       uint32_t d2, uint32_t d3) {
  to[0] = tinyet_subtract_int16x2_dsp(d0, d2);
  to[step] = tinyet_add_int16x2_dsp(d1, d2);
  to[2 * step] = tinyet_subtract_int16x2_dsp(d2, d1);
  to[3 * step] = tinyet_subtract_int16x2_dsp(d1, d3);
}

/* The columns of four channels of 4x4 pixels, `row` and `column` bytes apart, into 32 words. */
TINYET_DSP_INLINE void tinyet_winograd_f2x2_columns_dsp(uint32_t *work, const int8_t *from, const int32_t row,
                                                        const int32_t column) {
  for (int32_t x = 0; x < 4; x++, from += column) {
    const uint32_t a = tinyet_load_dsp(from), b = tinyet_load_dsp(from + row);
    const uint32_t c = tinyet_load_dsp(from + 2 * row), d = tinyet_load_dsp(from + 3 * row);
    tinyet_winograd_f2x2_inputs_dsp(work + x, 4, tinyet_even_bytes_dsp(a), tinyet_even_bytes_dsp(b),
                                    tinyet_even_bytes_dsp(c), tinyet_even_bytes_dsp(d));
    tinyet_winograd_f2x2_inputs_dsp(work + 16 + x, 4, tinyet_odd_bytes_dsp(a), tinyet_odd_bytes_dsp(b),
                                    tinyet_odd_bytes_dsp(c), tinyet_odd_bytes_dsp(d));
  }
}

/* Then the rows; `step` words from position to position. */
TINYET_DSP_INLINE void tinyet_winograd_f2x2_rows_dsp(uint32_t *to, const int32_t step, const uint32_t *work) {
#pragma GCC unroll 8
  for (int32_t i = 0; i < 8; i++, work += 4) {
    tinyet_winograd_f2x2_inputs_dsp(to + 4 * (i / 4) + i % 4 * 4 * step, step, work[0], work[1], work[2], work[3]);
  }
}

/* ---- F(4x4, 3x3) ---- */

/* Six input pixels in a row or column. A pair is one number here, upper half * 2^16 + lower half, modulo 2^32. */
TINYET_DSP_INLINE void tinyet_winograd_f4x4_inputs_dsp(uint32_t *to, const int32_t step, uint32_t d0, uint32_t d1,
                                                       uint32_t d2, uint32_t d3, uint32_t d4, uint32_t d5) {
  const uint32_t a = d4 - (d2 << 2), b = d3 - (d1 << 2), c = d4 - d2, e = d3 - d1;
  to[0] = c + ((d0 - d2) << 2);
  to[step] = a + b;
  to[2 * step] = a - b;
  to[3 * step] = c + (e << 1);
  to[4 * step] = c - (e << 1);
  to[5 * step] = d5 - d3 - (e << 2);
}

/* The columns of four channels of 6x6 pixels, `row` and `column` bytes apart, into 72 words. */
TINYET_DSP_INLINE void tinyet_winograd_f4x4_columns_dsp(uint32_t *work, const int8_t *from, const int32_t row,
                                                        const int32_t column) {
  const uint32_t plain = 0x00800080u; /* as of unsigned bytes */
  uint32_t lifted = plain;
  for (int32_t x = 0; x < 6; x++, from += column) {
    if (x == 4) {
      lifted += TINYET_DSP_LIFT;
    }
    const int8_t *const lower = from + 3 * row;
    const uint32_t a = tinyet_load_dsp(from), b = tinyet_load_dsp(from + row), c = tinyet_load_dsp(from + 2 * row);
    const uint32_t d = tinyet_load_dsp(lower), e = tinyet_load_dsp(lower + row), f = tinyet_load_dsp(lower + 2 * row);
    tinyet_winograd_f4x4_inputs_dsp(work + x, 6, tinyet_add_even_bytes_dsp(plain, a),
                                    tinyet_add_even_bytes_dsp(plain, b), tinyet_add_even_bytes_dsp(plain, c),
                                    tinyet_add_even_bytes_dsp(plain, d), tinyet_add_even_bytes_dsp(lifted, e),
                                    tinyet_add_even_bytes_dsp(lifted, f));
    TINYET_DSP_FORGET();
    tinyet_winograd_f4x4_inputs_dsp(work + 36 + x, 6, tinyet_add_odd_bytes_dsp(plain, tinyet_load_dsp(from)),
                                    tinyet_add_odd_bytes_dsp(plain, tinyet_load_dsp(from + row)),
                                    tinyet_add_odd_bytes_dsp(plain, tinyet_load_dsp(from + 2 * row)),
                                    tinyet_add_odd_bytes_dsp(plain, tinyet_load_dsp(lower)),
                                    tinyet_add_odd_bytes_dsp(lifted, tinyet_load_dsp(lower + row)),
                                    tinyet_add_odd_bytes_dsp(lifted, tinyet_load_dsp(lower + 2 * row)));
  }
}

/* Then the rows; `step` words from position to position. */
TINYET_DSP_INLINE void tinyet_winograd_f4x4_rows_dsp(uint32_t *to, const int32_t step, const uint32_t *work) {
  for (int32_t half = 0; half < 2; half++) {
    uint32_t *at = to + 4 * half;
    for (int32_t i = 0; i < 6; i++, work += 6, at += 6 * step) {
      tinyet_winograd_f4x4_inputs_dsp(at, step, work[0], work[1], work[2], work[3], work[4], work[5]);
    }
  }
}

/* Six positions in a row or column to four outputs, modulo 2^32. */
TINYET_DSP_INLINE void tinyet_winograd_f4x4_outputs_dsp(uint32_t *to, uint32_t m0, uint32_t m1, uint32_t m2,
                                                        uint32_t m3, uint32_t m4, uint32_t m5) {
  const uint32_t s = m1 + m2, d = m1 - m2, p = m3 + m4, q = m3 - m4;
  to[0] = m0 + s + p;
  to[1] = d + (q << 1);
  to[2] = s + (p << 2);
  to[3] = d + (q << 3) + (m5 + (m5 << 1));
}

/* The rows of one output channel of four tiles, into 24 words each; `step` words from position to position. */
TINYET_DSP_INLINE void tinyet_winograd_f4x4_sums_dsp(uint32_t *to, const uint32_t *sums, const int32_t step) {
#if TINYET_DSP_ASM
  /* Two tiles at a time, tile 0 in r0, r2, r4, r6, r8 (positions 0 ... 4), tile 1 in r1, r3, r5, r7, r11. */
  for (int32_t k = 0; k < 4; k += 2) {
    const struct {
      uint32_t *to;
      const uint32_t *sums, *end;
    } state = {to + 24 * k, sums + k, sums + k + 36 * step};
    __asm__ volatile(
        "push {r0, r7}\n"
        "ldrd r9, r10, [%[p]]\n"
        "ldr lr, [%[p], #8]\n"
        "1:\n" TINYET_DSP_TWO_TILES("r0", "r1") TINYET_DSP_TWO_TILES("r2", "r3") TINYET_DSP_TWO_TILES("r4", "r5")
        "add r12, r2, r4\n" /* s of tile 0: r12, d: r2 */
        "sub r2, r2, r4\n"
        "add r4, r3, r5\n" /* s of tile 1: r4, d: r3 */
        "sub r3, r3, r5\n"
        "add r0, r0, r12\n"
        "add r1, r1, r4\n" TINYET_DSP_TWO_TILES("r6", "r7") TINYET_DSP_TWO_TILES("r8", "r11")
        "add r5, r6, r8\n" /* p of tile 0: r5, q: r6 */
        "sub r6, r6, r8\n"
        "add r0, r0, r5\n"
        "add r12, r12, r5, lsl #2\n"
        "add r5, r2, r6, lsl #1\n"
        "add r2, r2, r6, lsl #3\n"
        "add r6, r7, r11\n" /* p of tile 1: r6, q: r7 */
        "sub r7, r7, r11\n"
        "add r1, r1, r6\n"
        "add r4, r4, r6, lsl #2\n"
        "add r6, r3, r7, lsl #1\n"
        "add r3, r3, r7, lsl #3\n" TINYET_DSP_TWO_TILES("r8", "r11")
        "add r8, r8, r8, lsl #1\n"
        "add r11, r11, r11, lsl #1\n"
        "add r2, r2, r8\n"
        "add r3, r3, r11\n"
        "str r1, [r9, #96]\n"
        "str r6, [r9, #100]\n"
        "str r4, [r9, #104]\n"
        "str r3, [r9, #108]\n"
        "str r5, [r9, #4]\n"
        "str r12, [r9, #8]\n"
        "str r2, [r9, #12]\n"
        "str r0, [r9], #16\n"
        "cmp r10, lr\n"
        "bne 1b\n"
        "pop {r0, r7}\n"
        :
        : [p] "r"(&state), [step] "i"(4 * step)
        : TINYET_DSP_WINOGRAD_LOST);
  }
#else
  for (int32_t k = 0; k < 4; k++, to += 24) {
    for (int32_t i = 0; i < 6; i++) {
      const uint32_t *const m = sums + k + 6 * i * step;
      tinyet_winograd_f4x4_outputs_dsp(to + 4 * i, m[0], m[step], m[2 * step], m[3 * step], m[4 * step], m[5 * step]);
    }
  }
#endif
}

/* What one output channel needs to become int8. */
typedef struct {
  int32_t factor, multiplier, offset, shift;
} tinyet_winograd_end_dsp;

TINYET_DSP_INLINE int8_t tinyet_winograd_round_dsp(uint32_t sum, const int32_t tile, const tinyet_winograd_end_dsp end,
                                                   const tinyet_rounding_dsp rounding) {
  /* Powers of two that are left: those of 4, and of 576. */
  const int32_t left = (tile == 2 ? 2 : 6) - (rounding.form == TINYET_DSP_TWO_SIDED ? 1 : 0);
  int32_t shifted = (int32_t)(tile == 2 ? sum : sum * (uint32_t)end.factor);
  if (rounding.form != TINYET_DSP_ONE_SIDED) {
    shifted >>= left;
  }
  return tinyet_round_shifted_dsp(shifted, end.multiplier, end.offset, end.shift, rounding);
}

/* One output channel of four tiles, whose sums are `step` words from position to position; work: 96 words */
TINYET_DSP_INLINE void tinyet_winograd_finish_dsp(int8_t *output, const int32_t *places, uint32_t *work,
                                                  const uint32_t *sums, const int32_t tile, const int32_t step,
                                                  const tinyet_winograd_shape_dsp s, const tinyet_winograd_end_dsp end,
                                                  const tinyet_rounding_dsp rounding) {
  const int32_t row = s.out_w * s.out_pixel_stride;
  if (tile == 2) {
    for (int32_t k = 0; k < 4; k++, sums++) {
      const uint32_t *m = sums;
      uint32_t rows[8];
#pragma GCC unroll 4
      for (int32_t i = 0; i < 4; i++, m += 4 * step) {
        rows[i] = m[0] + m[step] + m[2 * step];
        rows[4 + i] = m[step] - m[2 * step] - m[3 * step];
      }
      int8_t *out = output + places[k];
#pragma GCC unroll 2
      for (int32_t x = 0; x < 2; x++, out += s.out_pixel_stride) {
        const uint32_t *const r = rows + 4 * x;
        out[0] = tinyet_winograd_round_dsp(r[0] + r[1] + r[2], tile, end, rounding);
        out[row] = tinyet_winograd_round_dsp(r[1] - r[2] - r[3], tile, end, rounding);
      }
    }
  } else {
    tinyet_winograd_f4x4_sums_dsp(work, sums, step);
    for (int32_t k = 0; k < 4; k++, work += 20) {
      int8_t *out = output + places[k];
      for (const uint32_t *const last = work + 4; work != last; work++, out += s.out_pixel_stride) {
        uint32_t y[4];
        tinyet_winograd_f4x4_outputs_dsp(y, work[0], work[4], work[8], work[12], work[16], work[20]);
#pragma GCC unroll 4
        for (int32_t i = 0; i < 4; i++) {
          out[i * row] = tinyet_winograd_round_dsp(y[i], tile, end, rounding);
        }
      }
    }
  }
}

/* The part of a tile's input that is inside the image, in pixels of the tile, and where the tile begins in the image. */
typedef struct {
  int32_t top, left, first_row, end_row, first_column, end_column;
} tinyet_winograd_part_dsp;

TINYET_DSP_INLINE tinyet_winograd_part_dsp tinyet_winograd_inside_dsp(const int32_t top, const int32_t left,
                                                                      const int32_t side,
                                                                      const tinyet_winograd_shape_dsp s) {
  const tinyet_winograd_part_dsp part = {top,
                                         left,
                                         top < 0 ? -top : 0,
                                         top + side > s.in_h ? s.in_h - top : side,
                                         left < 0 ? -left : 0,
                                         left + side > s.in_w ? s.in_w - left : side};
  return part;
}

/* Four channels of that part, or as many as there are, into a tile of its own. */
TINYET_DSP_INLINE void tinyet_winograd_gather_dsp(uint32_t *to, const int8_t *image, const int32_t channel,
                                                  const int32_t side, const tinyet_winograd_part_dsp part,
                                                  const tinyet_winograd_shape_dsp s) {
  for (int32_t y = part.first_row; y < part.end_row; y++) {
    const int8_t *from = image + ((part.top + y) * s.in_w + part.left + part.first_column) * s.in_pixel_stride + channel;
    uint32_t *at = to + side * y + part.first_column;
    for (int32_t x = part.first_column; x < part.end_column; x++, from += s.in_pixel_stride, at++) {
      if (s.in_c % 4 == 0 || channel + 4 <= s.in_c) {
        *at = tinyet_load_dsp(from);
      } else {
        *at = (uint8_t)from[0]; /* inputs without a channel meet weights of zero */
        *at |= s.in_c % 4 > 1 ? (uint32_t)(uint8_t)from[1] << 8 : 0;
        *at |= s.in_c % 4 > 2 ? (uint32_t)(uint8_t)from[2] << 16 : 0;
      }
    }
  }
}

TINYET_DSP_INLINE void tinyet_winograd_columns_dsp(uint32_t *work, const int8_t *from, const int32_t row,
                                                   const int32_t column, const int32_t tile) {
  if (tile == 2) {
    tinyet_winograd_f2x2_columns_dsp(work, from, row, column);
  } else {
    tinyet_winograd_f4x4_columns_dsp(work, from, row, column);
  }
}

/* The output channels from `begin` to `end`, which is not one of them, whose stream begins at `weights`.
 * kept: whether the transformed inputs of the only four tiles are in scratch already. */
TINYET_DSP_INLINE void tinyet_winograd_channels_dsp(const int8_t *input, int8_t *output, void *scratch,
                                                    const int32_t *weights, const int32_t begin, const int32_t end,
                                                    const int kept, const int32_t tile,
                                                    const tinyet_products_function_dsp products,
                                                    const tinyet_winograd_shape_dsp s,
                                                    const tinyet_rounding_dsp rounding) {
  const int32_t side = tile + 2, positions = side * side;
  const int32_t pairs = (s.in_c + 3) / 4 * 2, step = 4 * pairs + 8;
  const int32_t across = (s.out_w + tile - 1) / tile, count = (s.out_h + tile - 1) / tile * across;
  uint32_t *const tiles = (uint32_t *)scratch;
  uint32_t *const patch = tiles + positions * step;
  uint32_t *const work = patch + positions;
  for (int32_t n = 0; n < s.batch; n++) {
    for (int32_t first = 0, y = 0, x = 0; first < count; first += 4) {
      int32_t places[4];
      for (int32_t k = 0; k < 4; k++) {
        const int32_t oy = s.out_h % tile != 0 && y > s.out_h - tile ? s.out_h - tile : y;
        const int32_t ox = s.out_w % tile != 0 && x > s.out_w - tile ? s.out_w - tile : x;
        const int32_t top = oy - s.pad_top, left = ox - s.pad_left;
        const tinyet_winograd_part_dsp part = tinyet_winograd_inside_dsp(top, left, side, s);
        const int whole = top >= 0 && left >= 0 && top + side <= s.in_h && left + side <= s.in_w;
        places[k] = (oy * s.out_w + ox) * s.out_pixel_stride;
        if (!whole && !kept) {
          uint32_t blank = 0x01010101u * (uint8_t)s.zero_point;
          for (int32_t i = 0; i < positions; i++) {
            TINYET_DSP_UNKNOWN(blank); /* or it becomes a call of memset, byte by byte */
            patch[i] = blank;
          }
        }
        uint32_t *to = tiles + k;
        for (int32_t c = kept ? s.in_c : 0; c < s.in_c; c += 4, to += 8) {
          if (whole && (s.in_c % 4 == 0 || c + 4 <= s.in_c)) {
            tinyet_winograd_columns_dsp(work, input + (top * s.in_w + left) * s.in_pixel_stride + c,
                                        s.in_w * s.in_pixel_stride, s.in_pixel_stride, tile);
          } else {
            tinyet_winograd_gather_dsp(patch, input, c, side, part, s);
            tinyet_winograd_columns_dsp(work, (const int8_t *)patch, 4 * side, 4, tile);
          }
          if (tile == 2) {
            tinyet_winograd_f2x2_rows_dsp(to, step, work);
          } else {
            tinyet_winograd_f4x4_rows_dsp(to, step, work);
          }
        }
        /* The last tile stays the last. */
        if (x + tile < s.out_w) {
          x += tile;
        } else if (y + tile < s.out_h) {
          x = 0;
          y += tile;
        }
      }
      const int32_t *w = weights;
      const int32_t behind = tile == 2 ? 0 : 2; /* the factors */
      for (int32_t channel = begin; channel < end; channel += 2) {
        products(w, tiles, tiles + positions * step);
        w += positions * (2 + 2 * pairs);
        for (int32_t which = 0; which < 2 && (s.out_c % 2 == 0 || channel + which < s.out_c); which++) {
          const tinyet_winograd_end_dsp last = {w[which], w[behind + which], w[behind + 2 + which],
                                                w[behind + 4 + which]};
          tinyet_winograd_finish_dsp(output + channel + which, places, patch, tiles + 4 * pairs + 4 * which, tile, step,
                                     s, last, rounding);
        }
        w += behind + 6;
      }
    }
    input += s.in_h * s.in_w * s.in_pixel_stride;
    output += s.out_h * s.out_w * s.out_pixel_stride;
  }
}

/* tile: 2 or 4, a literal; needs as many output rows and columns.
 * scratch: side^2 * (16 * pairs + 44) bytes; side = tile + 2, pairs = in_c / 4, rounded up, * 2 */
TINYET_DSP_INLINE void tinyet_winograd_conv2d_dsp(const int8_t *input, int8_t *output, void *scratch,
                                                  const int32_t *weights, const int32_t tile,
                                                  const tinyet_products_function_dsp products,
                                                  const tinyet_winograd_shape_dsp s,
                                                  const tinyet_rounding_dsp rounding) {
  tinyet_winograd_channels_dsp(input, output, scratch, weights, 0, s.out_c, 0, tile, products, s, rounding);
}

/* ---- F(2x2, 3x3) whose weights are transformed by each call ---- */

/* Both values of a pair, shifted to the left. */
TINYET_DSP_INLINE uint32_t tinyet_shift_int16x2_dsp(uint32_t pair, int32_t bits) {
  return tinyet_low_int16x2_dsp(pair << bits, pair >> 16 << bits);
}

/* Three weights in a row or column, of a pair of channels. */
TINYET_DSP_INLINE void tinyet_winograd_f2x2_weights_dsp(uint32_t *to, const int32_t step, uint32_t g0, uint32_t g1,
                                                        uint32_t g2) {
  const uint32_t ends = tinyet_add_int16x2_dsp(g0, g2);
  to[0] = tinyet_add_int16x2_dsp(g0, g0);
  to[step] = tinyet_add_int16x2_dsp(ends, g1);
  to[2 * step] = tinyet_subtract_int16x2_dsp(ends, g1);
  to[3 * step] = tinyet_add_int16x2_dsp(g2, g2);
}

/* Nine weights of a pair of input channels, each shifted by `bits`, into all positions, `step` words apart. */
TINYET_DSP_INLINE void tinyet_winograd_f2x2_kernel_dsp(uint32_t *to, const int32_t step, const uint32_t *taps,
                                                       int32_t bits) {
  uint32_t rows[12];
  for (int32_t x = 0; x < 3; x++) {
    tinyet_winograd_f2x2_weights_dsp(rows + x, 3, tinyet_shift_int16x2_dsp(taps[x], bits),
                                     tinyet_shift_int16x2_dsp(taps[3 + x], bits),
                                     tinyet_shift_int16x2_dsp(taps[6 + x], bits));
  }
  for (int32_t y = 0; y < 4; y++) {
    tinyet_winograd_f2x2_weights_dsp(to + 4 * y * step, step, rows[3 * y], rows[3 * y + 1], rows[3 * y + 2]);
  }
}

/* The stream above from one with int8 weights. In words, for each pair of output channels a, b:
 *   start of position (1, 1) a, b | multiplier a, b | offset a, b | shift a, b |
 *   for each pair of input channels, for each tap: bytes {a0, b0, a1, b1} */
TINYET_DSP_INLINE void tinyet_winograd_f2x2_stream_dsp(uint32_t *to, const int32_t *from, const int32_t pairs,
                                                       const tinyet_winograd_shape_dsp s,
                                                       const tinyet_rounding_dsp rounding) {
  const int32_t step = 2 + 2 * pairs;
  for (int32_t channel = 0; channel < s.out_c; channel += 2) {
    const int32_t *const head = from;
    for (int32_t position = 0; position < 16; position++) {
      to[position * step] = position == 5 ? (uint32_t)head[0] : 0;
      to[position * step + 1] = position == 5 ? (uint32_t)head[1] : 0;
    }
    from += 8;
    for (int32_t pair = 0; pair < pairs; pair++, from += 9) {
      for (int32_t which = 0; which < 2; which++) {
        uint32_t taps[9];
        for (int32_t tap = 0; tap < 9; tap++) {
          taps[tap] = tinyet_even_bytes_dsp((uint32_t)from[tap] >> (8 * which));
        }
        tinyet_winograd_f2x2_kernel_dsp(to + 2 + 2 * pair + which, step, taps,
                                        rounding.form == TINYET_DSP_ONE_SIDED ? head[6 + which] - 2 : 0);
      }
    }
    memcpy(to + 16 * step, head + 2, 24);
    to += 16 * step + 6;
  }
}

/* scratch: as above, and the stream. */
TINYET_DSP_INLINE void tinyet_conv2d_s8_winograd_f2x2_dsp(const int8_t *input, int8_t *output, void *scratch,
                                                          const int32_t *weights,
                                                          const tinyet_products_function_dsp products,
                                                          const tinyet_winograd_shape_dsp s,
                                                          const tinyet_rounding_dsp rounding) {
  const int32_t pairs = (s.in_c + 3) / 4 * 2;
  uint32_t *const stream = (uint32_t *)scratch + 4 * (16 * pairs + 44);
  tinyet_winograd_f2x2_stream_dsp(stream, weights, pairs, s, rounding);
  tinyet_winograd_conv2d_dsp(input, output, scratch, (const int32_t *)stream, 2, products, s, rounding);
}

/* ---- F(4x4, 3x3) whose weights are transformed by each call, those of a few output channels at a time ---- */

/* The stream of `count` output channels from one with int8 weights, of which what is left is returned. pairs: of input
 * channels. In words, for each pair of output channels a, b:
 *   start of position (1, 1) a, b, but for the lift | factor a, b | multiplier a, b | offset a, b | shift a, b |
 *   for each pair of input channels, for each tap: bytes {a0, b0, a1, b1} */
#ifdef __cplusplus
extern "C" {
#endif
const int32_t *tinyet_winograd_f4x4_stream_dsp(uint32_t *to, const int32_t *from, int32_t count, int32_t pairs);
#ifdef __cplusplus
}
#endif

/* at_once: output channels whose weights are transformed at a time, an even number.
 * scratch: that of F(4x4), and 4 * (36 * (2 + 2 * pairs) + 8) bytes for two of these channels. */
TINYET_DSP_INLINE void tinyet_conv2d_s8_winograd_f4x4_dsp(const int8_t *input, int8_t *output, void *scratch,
                                                          const int32_t *weights, const int32_t at_once,
                                                          const tinyet_products_function_dsp products,
                                                          const tinyet_winograd_shape_dsp s,
                                                          const tinyet_rounding_dsp rounding) {
  const int32_t pairs = (s.in_c + 3) / 4 * 2;
  uint32_t *const stream = (uint32_t *)scratch + 9 * (16 * pairs + 44);
  const int few = s.batch == 1 && (s.out_h + 3) / 4 * ((s.out_w + 3) / 4) <= 4;
  for (int32_t begin = 0; begin < s.out_c; begin += at_once) {
    const int32_t end = begin + at_once < s.out_c ? begin + at_once : s.out_c;
    weights = tinyet_winograd_f4x4_stream_dsp(stream, weights, end - begin, pairs);
    tinyet_winograd_channels_dsp(input, output, scratch, (const int32_t *)stream, begin, end, few && begin > 0, 4,
                                 products, s, rounding);
  }
}

#endif
