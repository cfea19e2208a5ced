/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd convolutions F(2x2, 3x3) and F(4x4, 3x3) of stride 1 for cores with DSP instructions, exact in integers: see
 * tinyet_dsp.h, and docs/winograd.md for the proof.
 *
 * A tile of 2x2 (4x4) output pixels is made of 4x4 (6x6) input pixels by 16 (36) products a pair of input and output channel
 * instead of 36 (144). Inputs are transformed here, weights were ahead of time. Four tiles by two output channels are
 * multiplied at a time: eight sums in registers. Tiles at the right and lower edges overlap those before, so that none
 * reaches beyond the output; the four last are filled up with the last one.
 *
 * Scratch, in words, position by position of the transformed tile: for each pair of input channels that of the four tiles;
 * then the eight sums of two output channels, a0 ... a3, b0 ... b3. Input channels are paired as in tinyet_dsp_widen, and
 * filled up to a multiple of four.
 *
 * The weight stream, in words, for each pair of output channels a, b (b has zeros where out_c is odd):
 *   for each position: start a, b, and for each pair of input channels its weights for a, and for b |
 *   factor a, b | multiplier a, b | offset a, b | shift a, b
 * Sums are 4 (576) times too large. Modulo 2^32 the factor takes that away but for a power of two, or, where the rounding is
 * one-sided, to the shift that it wants to have before its multiplication. */
#ifndef TINYET_DSP_WINOGRAD_H
#define TINYET_DSP_WINOGRAD_H

#include "tinyet_dsp.h"

/* What a specialised convolution is made for; literals. Strides and dilations are 1. */
typedef struct {
  int32_t batch, in_h, in_w, in_c;
  int32_t out_h, out_w, out_c;
  int32_t pad_top, pad_left;
  int32_t zero_point; /* what padding reads as */
  int32_t unroll;     /* pairs of input channels of straight code; divides their number */
} tinyet_dsp_winograd;

/* Added to the lower half of a pair before F(4x4): keeps that between 0 and 2^15 - 1, so that nothing is carried from it to
 * the upper half, and both are computed by plain instructions. The stream's starts take it away again. */
enum { TINYET_DSP_LIFT = 12800 };

#if TINYET_DSP_ASM
#define TINYET_DSP_PRODUCT(A0, A1, A2, A3, B0, B1, B2, B3) \
  "ldrd r11, r12, [r9], #8\n"                              \
  "ldrd lr, r0, [r10], #8\n"                               \
  "smlad r1, r11, lr, " A0 "\n"                            \
  "smlad r5, r12, lr, " B0 "\n"                            \
  "smlad r2, r11, r0, " A1 "\n"                            \
  "smlad r6, r12, r0, " B1 "\n"                            \
  "ldrd lr, r0, [r10], #8\n"                               \
  "smlad r3, r11, lr, " A2 "\n"                            \
  "smlad r7, r12, lr, " B2 "\n"                            \
  "smlad r4, r11, r0, " A3 "\n"                            \
  "smlad r8, r12, r0, " B3 "\n"
#define TINYET_DSP_NEXT_PRODUCT TINYET_DSP_PRODUCT("r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8")
#define TINYET_DSP_FIRST_PRODUCT TINYET_DSP_PRODUCT("r4", "r4", "r4", "r4", "r8", "r8", "r8", "r8")
/* r7 may be the frame pointer, which is not to be named among the registers that are lost. p is in r0 or r7. */
#define TINYET_DSP_ENTER_PRODUCTS \
  "push {r0, r7}\n"               \
  "ldrd r9, r10, [%[p]]\n"        \
  "ldr r11, [%[p], #8]\n"
#define TINYET_DSP_LEAVE_PRODUCTS \
  "ldr r11, [sp]\n"               \
  "cmp r10, r11\n"                \
  "bne 1b\n"                      \
  "add sp, sp, #4\n"              \
  "pop {r0, r7}\n"
#define TINYET_DSP_PRODUCTS_LOST "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "memory", "cc"
#endif

/* The sums of two output channels, at all positions of four tiles. */
TINYET_DSP_INLINE void tinyet_dsp_winograd_products(const int32_t *w, uint32_t *x, const int32_t positions,
                                                    const int32_t pairs, const int32_t unroll) {
#if TINYET_DSP_ASM
  const struct {
    const int32_t *w;
    uint32_t *x, *end;
  } state = {w, x, x + positions * (4 * pairs + 8)};
  if (unroll == pairs) {
    __asm__ volatile(TINYET_DSP_ENTER_PRODUCTS "push {r11}\n"
                                               "1:\n"
                                               "ldrd r4, r8, [r9], #8\n" TINYET_DSP_FIRST_PRODUCT
                                               ".rept %c[unroll] - 1\n" TINYET_DSP_NEXT_PRODUCT ".endr\n"
                                               "stmia r10!, {r1-r8}\n" TINYET_DSP_LEAVE_PRODUCTS
                     :
                     : [p] "r"(&state), [unroll] "i"(unroll)
                     : TINYET_DSP_PRODUCTS_LOST);
  } else {
    __asm__ volatile(TINYET_DSP_ENTER_PRODUCTS "push {r11}\n"
                                               "1:\n"
                                               "ldrd r4, r8, [r9], #8\n"
                                               "addw r11, r10, #%c[bytes]\n"
                                               "push {r11}\n"
                                               "mov r1, r4\n"
                                               "mov r2, r4\n"
                                               "mov r3, r4\n"
                                               "mov r5, r8\n"
                                               "mov r6, r8\n"
                                               "mov r7, r8\n"
                                               "2:\n"
                                               ".rept %c[unroll]\n" TINYET_DSP_NEXT_PRODUCT ".endr\n"
                                               "ldr r11, [sp]\n"
                                               "cmp r10, r11\n"
                                               "bne 2b\n"
                                               "add sp, sp, #4\n"
                                               "stmia r10!, {r1-r8}\n" TINYET_DSP_LEAVE_PRODUCTS
                     :
                     : [p] "r"(&state), [unroll] "i"(unroll), [bytes] "i"(16 * pairs)
                     : TINYET_DSP_PRODUCTS_LOST);
  }
#else
  (void)unroll;
  for (int32_t position = 0; position < positions; position++) {
    int32_t sums[8];
    for (int32_t k = 0; k < 8; k++) {
      sums[k] = w[k / 4];
    }
    w += 2;
    for (int32_t pair = 0; pair < pairs; pair++, w += 2, x += 4) {
      for (int32_t k = 0; k < 8; k++) {
        sums[k] = tinyet_dsp_smlad((uint32_t)w[k / 4], x[k % 4], sums[k]);
      }
    }
    memcpy(x, sums, sizeof sums);
    x += 8;
  }
#endif
}

/* ---- F(2x2, 3x3) ---- */

/* Four input pixels in a row or column, of a pair of channels. */
TINYET_DSP_INLINE void tinyet_dsp_winograd2_inputs(uint32_t *to, const int32_t step, uint32_t d0, uint32_t d1,
                                                   uint32_t d2, uint32_t d3) {
  to[0] = tinyet_dsp_subtract_halves(d0, d2);
  to[step] = tinyet_dsp_add_halves(d1, d2);
  to[2 * step] = tinyet_dsp_subtract_halves(d2, d1);
  to[3 * step] = tinyet_dsp_subtract_halves(d1, d3);
}

/* Four channels of 4x4 pixels, `row` and `column` bytes apart; `step` words from position to position. */
TINYET_DSP_INLINE void tinyet_dsp_winograd2_tile(uint32_t *to, const int32_t step, const int8_t *from,
                                                 const int32_t row, const int32_t column) {
#pragma GCC unroll 4
  for (int32_t i = 0; i < 4; i++, to += 4 * step) {
    /* The rows that make row i of the transformed tile. */
    const int8_t *first = from + (i == 0 ? 0 : (i == 2 ? 2 : 1)) * row;
    const int8_t *second = from + (i == 3 ? 3 : (i == 2 ? 1 : 2)) * row;
    uint32_t even[4], odd[4];
#pragma GCC unroll 4
    for (int32_t x = 0; x < 4; x++, first += column, second += column) {
      const uint32_t a = tinyet_dsp_load(first), b = tinyet_dsp_load(second);
      even[x] = i == 1 ? tinyet_dsp_add_halves(tinyet_dsp_even(a), tinyet_dsp_even(b))
                       : tinyet_dsp_subtract_halves(tinyet_dsp_even(a), tinyet_dsp_even(b));
      odd[x] = i == 1 ? tinyet_dsp_add_halves(tinyet_dsp_odd(a), tinyet_dsp_odd(b))
                      : tinyet_dsp_subtract_halves(tinyet_dsp_odd(a), tinyet_dsp_odd(b));
    }
    tinyet_dsp_winograd2_inputs(to, step, even[0], even[1], even[2], even[3]);
    tinyet_dsp_winograd2_inputs(to + 4, step, odd[0], odd[1], odd[2], odd[3]);
  }
}

/* ---- F(4x4, 3x3) ---- */

/* Six input pixels in a row or column. A pair is one number here, upper half * 2^16 + lower half, modulo 2^32. */
TINYET_DSP_INLINE void tinyet_dsp_winograd4_inputs(uint32_t *to, const int32_t step, uint32_t d0, uint32_t d1,
                                                   uint32_t d2, uint32_t d3, uint32_t d4, uint32_t d5) {
  const uint32_t a = d4 - (d2 << 2), b = d3 - (d1 << 2), c = d4 - d2, e = d3 - d1;
  to[0] = c + ((d0 - d2) << 2);
  to[step] = a + b;
  to[2 * step] = a - b;
  to[3 * step] = c + (e << 1);
  to[4 * step] = c - (e << 1);
  to[5 * step] = d5 - d3 - (e << 2);
}

/* Four channels of 6x6 pixels, `row` and `column` bytes apart; `step` words from position to position. work: 72 words */
TINYET_DSP_INLINE void tinyet_dsp_winograd4_tile(uint32_t *to, const int32_t step, uint32_t *work, const int8_t *from,
                                                 const int32_t row, const int32_t column) {
  const uint32_t plain = 0x00800080u; /* as of unsigned bytes */
  uint32_t lifted = plain;
  for (int32_t x = 0; x < 6; x++, from += column) {
    if (x == 4) {
      lifted += TINYET_DSP_LIFT;
    }
    const int8_t *const lower = from + 3 * row;
    const uint32_t a = tinyet_dsp_load(from), b = tinyet_dsp_load(from + row), c = tinyet_dsp_load(from + 2 * row);
    const uint32_t d = tinyet_dsp_load(lower), e = tinyet_dsp_load(lower + row), f = tinyet_dsp_load(lower + 2 * row);
    tinyet_dsp_winograd4_inputs(work + x, 6, tinyet_dsp_add_even(plain, a), tinyet_dsp_add_even(plain, b),
                                tinyet_dsp_add_even(plain, c), tinyet_dsp_add_even(plain, d),
                                tinyet_dsp_add_even(lifted, e), tinyet_dsp_add_even(lifted, f));
    tinyet_dsp_winograd4_inputs(work + 36 + x, 6, tinyet_dsp_add_odd(plain, a), tinyet_dsp_add_odd(plain, b),
                                tinyet_dsp_add_odd(plain, c), tinyet_dsp_add_odd(plain, d),
                                tinyet_dsp_add_odd(lifted, e), tinyet_dsp_add_odd(lifted, f));
  }
  for (int32_t half = 0; half < 2; half++) {
    uint32_t *at = to + 4 * half;
    for (int32_t i = 0; i < 6; i++, work += 6, at += 6 * step) {
      tinyet_dsp_winograd4_inputs(at, step, work[0], work[1], work[2], work[3], work[4], work[5]);
    }
  }
}

/* Six positions in a row or column to four outputs, modulo 2^32. */
TINYET_DSP_INLINE void tinyet_dsp_winograd4_outputs(uint32_t *to, const int32_t step, uint32_t m0, uint32_t m1,
                                                    uint32_t m2, uint32_t m3, uint32_t m4, uint32_t m5) {
  const uint32_t s = m1 + m2, d = m1 - m2, p = m3 + m4, q = m3 - m4;
  to[0] = m0 + s + p;
  to[step] = d + (q << 1);
  to[2 * step] = s + (p << 2);
  to[3 * step] = d + (q << 3) + (m5 + (m5 << 1));
}

/* ---- both ---- */

/* What one output channel needs to become int8. */
typedef struct {
  int32_t factor, multiplier, offset, shift;
} tinyet_dsp_winograd_end;

TINYET_DSP_INLINE int8_t tinyet_dsp_winograd_round(uint32_t sum, const int32_t tile, const tinyet_dsp_winograd_end end,
                                                   const tinyet_dsp_rounding rounding) {
  /* Powers of two that are left: those of 4, and of 576. */
  const int32_t left = (tile == 2 ? 2 : 6) - (rounding.form == TINYET_DSP_TWO_SIDED ? 1 : 0);
  int32_t shifted = (int32_t)(sum * (uint32_t)end.factor);
  if (rounding.form != TINYET_DSP_ONE_SIDED) {
    shifted >>= left;
  }
  return tinyet_dsp_round_shifted(shifted, end.multiplier, end.offset, end.shift, rounding);
}

/* One tile of one output channel: sums are `step` words apart, output pixels and rows `pixel` and `row` bytes. */
TINYET_DSP_INLINE void tinyet_dsp_winograd_finish(int8_t *out, const uint32_t *sums, const int32_t tile,
                                                  const int32_t step, const int32_t pixel, const int32_t row,
                                                  const tinyet_dsp_winograd_end end,
                                                  const tinyet_dsp_rounding rounding) {
  uint32_t columns[4 * 6];
  if (tile == 2) {
#pragma GCC unroll 4
    for (int32_t i = 0; i < 4; i++, sums += 4 * step) {
      columns[i] = sums[0] + sums[step] + sums[2 * step];
      columns[4 + i] = sums[step] - sums[2 * step] - sums[3 * step];
    }
#pragma GCC unroll 2
    for (int32_t x = 0; x < 2; x++, out += pixel) {
      const uint32_t *const m = columns + 4 * x;
      out[0] = tinyet_dsp_winograd_round(m[0] + m[1] + m[2], tile, end, rounding);
      out[row] = tinyet_dsp_winograd_round(m[1] - m[2] - m[3], tile, end, rounding);
    }
  } else {
    for (int32_t i = 0; i < 6; i++, sums += 6 * step) {
      tinyet_dsp_winograd4_outputs(columns + i, 6, sums[0], sums[step], sums[2 * step], sums[3 * step],
                                   sums[4 * step], sums[5 * step]);
    }
    for (int32_t x = 0; x < 4; x++, out += pixel) {
      const uint32_t *const m = columns + 6 * x;
      uint32_t y[4];
      tinyet_dsp_winograd4_outputs(y, 1, m[0], m[1], m[2], m[3], m[4], m[5]);
      out[0] = tinyet_dsp_winograd_round(y[0], tile, end, rounding);
      out[row] = tinyet_dsp_winograd_round(y[1], tile, end, rounding);
      out[2 * row] = tinyet_dsp_winograd_round(y[2], tile, end, rounding);
      out[3 * row] = tinyet_dsp_winograd_round(y[3], tile, end, rounding);
    }
  }
}

/* Four channels of a tile's input, pixel by pixel, where it lies partly outside the image or has fewer channels. */
TINYET_DSP_INLINE void tinyet_dsp_winograd_gather(int8_t *to, const int8_t *image, const int32_t top,
                                                  const int32_t left, const int32_t channel, const int32_t side,
                                                  const tinyet_dsp_winograd s) {
  for (int32_t y = top; y < top + side; y++) {
    for (int32_t x = left; x < left + side; x++, to += 4) {
      const int32_t there = s.in_c - channel < 4 ? s.in_c - channel : 4;
      if ((uint32_t)y >= (uint32_t)s.in_h || (uint32_t)x >= (uint32_t)s.in_w) {
        memset(to, s.zero_point, 4);
      } else if (there == 4) {
        memcpy(to, image + (y * s.in_w + x) * s.in_c + channel, 4);
      } else {
        memset(to, 0, 4); /* what has no channel meets weights of zero */
        for (int32_t i = 0; i < there; i++) {
          to[i] = image[(y * s.in_w + x) * s.in_c + channel + i];
        }
      }
    }
  }
}

/* tile: 2 or 4, a literal; needs as many output rows and columns.
 * scratch: side^2 * (16 * pairs + 32) + 4 * side^2 bytes, for 4x4 288 more; side = tile + 2, pairs = in_c / 4, rounded up, * 2 */
TINYET_DSP_INLINE void tinyet_dsp_winograd_conv2d(const int8_t *input, int8_t *output, void *scratch,
                                                  const int32_t *weights, const int32_t tile,
                                                  const tinyet_dsp_winograd s, const tinyet_dsp_rounding rounding) {
  const int32_t side = tile + 2, positions = side * side;
  const int32_t pairs = (s.in_c + 3) / 4 * 2, step = 4 * pairs + 8;
  const int32_t across = (s.out_w + tile - 1) / tile, count = (s.out_h + tile - 1) / tile * across;
  uint32_t *const tiles = (uint32_t *)scratch;
  int8_t *const patch = (int8_t *)(tiles + positions * step);
  uint32_t *const work = tiles + positions * step + positions;
  for (int32_t n = 0; n < s.batch; n++) {
    for (int32_t first = 0, y = 0, x = 0; first < count; first += 4) {
      int32_t places[4];
      for (int32_t k = 0; k < 4; k++) {
        const int32_t oy = s.out_h % tile != 0 && y > s.out_h - tile ? s.out_h - tile : y;
        const int32_t ox = s.out_w % tile != 0 && x > s.out_w - tile ? s.out_w - tile : x;
        const int32_t top = oy - s.pad_top, left = ox - s.pad_left;
        const int inside = top >= 0 && left >= 0 && top + side <= s.in_h && left + side <= s.in_w;
        places[k] = (oy * s.out_w + ox) * s.out_c;
        uint32_t *to = tiles + k;
        for (int32_t c = 0; c < s.in_c; c += 4, to += 8) {
          const int8_t *from = patch;
          int32_t row = 4 * side, column = 4;
          if (inside && (s.in_c % 4 == 0 || c + 4 <= s.in_c)) {
            from = input + (top * s.in_w + left) * s.in_c + c;
            row = s.in_w * s.in_c;
            column = s.in_c;
          } else {
            tinyet_dsp_winograd_gather(patch, input, top, left, c, side, s);
          }
          if (tile == 2) {
            tinyet_dsp_winograd2_tile(to, step, from, row, column);
          } else {
            tinyet_dsp_winograd4_tile(to, step, work, from, row, column);
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
      for (int32_t channel = 0; channel < s.out_c; channel += 2) {
        tinyet_dsp_winograd_products(w, tiles, positions, pairs, s.unroll);
        w += positions * (2 + 2 * pairs);
        for (int32_t which = 0; which < 2 && (s.out_c % 2 == 0 || channel + which < s.out_c); which++) {
          const tinyet_dsp_winograd_end end = {w[which], w[2 + which], w[4 + which], w[6 + which]};
          const uint32_t *sums = tiles + 4 * pairs + 4 * which;
          for (int32_t k = 0; k < 4; k++, sums++) {
            tinyet_dsp_winograd_finish(output + places[k] + channel + which, sums, tile, step, s.out_c,
                                       s.out_w * s.out_c, end, rounding);
          }
        }
        w += 8;
      }
    }
    input += s.in_h * s.in_w * s.in_c;
    output += s.out_h * s.out_w * s.out_c;
  }
}

#endif
