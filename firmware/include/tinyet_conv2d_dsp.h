/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised int8 convolutions of one group for cores with DSP instructions: see tinyet_dsp.h.
 *
 * 4x2, four output pixels by two output channels at a time: eight sums in registers. The inputs of the four pixels are widened to
 * int16 once, into scratch, and serve all channels. They lie in scratch as "lanes": a lane is one pair of input channels of
 * one kernel row, and holds a word for each input column that the four pixels see, so that neighbouring pixels share
 * columns. A lane has `min(stride, taps)` runs of `run` words, run f being the columns f, f + stride, f + 2 * stride, …;
 * tap t of pixel j is word t * dilation / stride + j of run t * dilation % stride. Either stride or dilation is 1.
 *
 * The weight stream, in words, for each pair of output channels a, b (b has zeros where out_c is odd):
 *   bias a, b | for each lane, for each tap: bytes {a0, b0, a1, b1}, the weights of the lane's two channels |
 *   multiplier a, b | offset a, b | shift a, b */
#ifndef TINYET_CONV2D_DSP_H
#define TINYET_CONV2D_DSP_H

#include "tinyet_dsp.h"


/* The geometry of the multiply loop; literals. */
typedef struct {
  int32_t lanes;  /* in all: kernel rows times pairs of channels */
  int32_t taps;   /* of a kernel row */
  int32_t stride; /* of columns */
  int32_t dilation;
  int32_t run;
  int32_t width;  /* words of a lane */
  int32_t unroll;  /* taps of straight code; divides lanes * taps, and is a multiple of taps */
} tinyet_lanes_dsp;

/* Sums of pixels 0 ... 3 for channels a and b. */
typedef struct {
  int32_t a0, a1, a2, a3, b0, b1, b2, b3;
} tinyet_sums_dsp;

/* The word of tap `tap` of pixel 0, in a lane. */
TINYET_DSP_INLINE int32_t tinyet_tap_dsp(const tinyet_lanes_dsp g, int32_t tap) {
  return tap * g.dilation % g.stride * g.run + tap * g.dilation / g.stride;
}

#if TINYET_DSP_ASM
/* One tap for all eight sums: the weights are a pair a channel, four words are the pixels. x points where the
 * last tap of a lane reads pixel 2; that read moves it to the next lane. The geometry is in assembler symbols, since an asm
 * statement has room for few operands. */
#if defined(__clang__)
/* It does not always find so many registers: they have their names, and come from a struct and go back to it. */
#define TINYET_DSP_A0 "r1"
#define TINYET_DSP_A1 "r2"
#define TINYET_DSP_A2 "r3"
#define TINYET_DSP_A3 "r4"
#define TINYET_DSP_B0 "r5"
#define TINYET_DSP_B1 "r6"
#define TINYET_DSP_B2 "r7"
#define TINYET_DSP_B3 "r8"
#define TINYET_DSP_W "r9"
#define TINYET_DSP_X "r10"
#define TINYET_DSP_U "r11"
#define TINYET_DSP_V "r12"
#define TINYET_DSP_Y "lr"
#define TINYET_DSP_Z "r0"
#else
#define TINYET_DSP_A0 "%[a0]"
#define TINYET_DSP_A1 "%[a1]"
#define TINYET_DSP_A2 "%[a2]"
#define TINYET_DSP_A3 "%[a3]"
#define TINYET_DSP_B0 "%[b0]"
#define TINYET_DSP_B1 "%[b1]"
#define TINYET_DSP_B2 "%[b2]"
#define TINYET_DSP_B3 "%[b3]"
#define TINYET_DSP_W "%[w]"
#define TINYET_DSP_X "%[x]"
#define TINYET_DSP_U "%[u]"
#define TINYET_DSP_V "%[v]"
#define TINYET_DSP_Y "%[y]"
#define TINYET_DSP_Z "%[z]"
#endif
#define TINYET_DSP_GEOMETRY                           \
  TINYET_DSP_LINES                                    \
  ".set tinyet_taps, %c[geometry] & 0xff\n"           \
  ".set tinyet_stride, %c[geometry] >> 8 & 0xff\n"    \
  ".set tinyet_dilation, %c[geometry] >> 16 & 0xff\n" \
  ".set tinyet_run, %c[run]\n"                        \
  ".set tinyet_tap, tinyet_taps - 1\n"                \
  ".set tinyet_last, " TINYET_DSP_WORD " + 2\n"       \
  ".set tinyet_tap, 0\n"
#define TINYET_DSP_WORD \
  "tinyet_tap * tinyet_dilation %% tinyet_stride * tinyet_run + tinyet_tap * tinyet_dilation / tinyet_stride"
#define TINYET_DSP_TAP(A0, A1, A2, A3, B0, B1, B2, B3)                                                    \
  "ldr " TINYET_DSP_U ", [" TINYET_DSP_W "], #4\n"                                                        \
  "ldrd " TINYET_DSP_Y ", " TINYET_DSP_Z ", [" TINYET_DSP_X ", #(" TINYET_DSP_WORD " - tinyet_last) * 4]\n" \
  "sxtb16 " TINYET_DSP_V ", " TINYET_DSP_U ", ror #8\n"                                                   \
  "sxtb16 " TINYET_DSP_U ", " TINYET_DSP_U "\n"                                                           \
  "smlad " TINYET_DSP_A0 ", " TINYET_DSP_U ", " TINYET_DSP_Y ", " A0 "\n"                                 \
  "smlad " TINYET_DSP_B0 ", " TINYET_DSP_V ", " TINYET_DSP_Y ", " B0 "\n"                                 \
  "smlad " TINYET_DSP_A1 ", " TINYET_DSP_U ", " TINYET_DSP_Z ", " A1 "\n"                                 \
  "smlad " TINYET_DSP_B1 ", " TINYET_DSP_V ", " TINYET_DSP_Z ", " B1 "\n"                                 \
  ".if tinyet_tap == tinyet_taps - 1\n"                                                                   \
  "ldrd " TINYET_DSP_Y ", " TINYET_DSP_Z ", [" TINYET_DSP_X "], #%c[width] * 4\n"                         \
  ".set tinyet_tap, 0\n"                                                                                  \
  ".else\n"                                                                                               \
  "ldrd " TINYET_DSP_Y ", " TINYET_DSP_Z ", [" TINYET_DSP_X ", #(" TINYET_DSP_WORD                        \
  " - tinyet_last + 2) * 4]\n"                                                                            \
  ".set tinyet_tap, tinyet_tap + 1\n"                                                                     \
  ".endif\n"                                                                                              \
  "smlad " TINYET_DSP_A2 ", " TINYET_DSP_U ", " TINYET_DSP_Y ", " A2 "\n"                                 \
  "smlad " TINYET_DSP_B2 ", " TINYET_DSP_V ", " TINYET_DSP_Y ", " B2 "\n"                                 \
  "smlad " TINYET_DSP_A3 ", " TINYET_DSP_U ", " TINYET_DSP_Z ", " A3 "\n"                                 \
  "smlad " TINYET_DSP_B3 ", " TINYET_DSP_V ", " TINYET_DSP_Z ", " B3 "\n"
#define TINYET_DSP_NEXT_TAP                                                                                     \
  TINYET_DSP_TAP(TINYET_DSP_A0, TINYET_DSP_A1, TINYET_DSP_A2, TINYET_DSP_A3, TINYET_DSP_B0, TINYET_DSP_B1, \
                 TINYET_DSP_B2, TINYET_DSP_B3)
/* The first one, whose sums begin with the biases. */
#define TINYET_DSP_FIRST_TAP                                                                                    \
  TINYET_DSP_TAP(TINYET_DSP_A3, TINYET_DSP_A3, TINYET_DSP_A3, TINYET_DSP_A3, TINYET_DSP_B3, TINYET_DSP_B3, \
                 TINYET_DSP_B3, TINYET_DSP_B3)
#define TINYET_DSP_ALL_TAPS TINYET_DSP_FIRST_TAP ".rept %c[unroll] - 1\n" TINYET_DSP_NEXT_TAP ".endr\n"
/* In a loop, whose end is in the word that sp points at. */
#define TINYET_DSP_TAPS_IN_LOOP               \
  "mov " TINYET_DSP_A0 ", " TINYET_DSP_A3 "\n" \
  "mov " TINYET_DSP_A1 ", " TINYET_DSP_A3 "\n" \
  "mov " TINYET_DSP_A2 ", " TINYET_DSP_A3 "\n" \
  "mov " TINYET_DSP_B0 ", " TINYET_DSP_B3 "\n" \
  "mov " TINYET_DSP_B1 ", " TINYET_DSP_B3 "\n" \
  "mov " TINYET_DSP_B2 ", " TINYET_DSP_B3 "\n" \
  "1:\n"                                      \
  ".rept %c[unroll]\n" TINYET_DSP_NEXT_TAP    \
  ".endr\n"                                   \
  "ldr " TINYET_DSP_U ", [sp]\n"              \
  "cmp " TINYET_DSP_X ", " TINYET_DSP_U "\n"  \
  "bne 1b\n"                                  \
  "add sp, sp, #4\n"
#if defined(__clang__)
#define TINYET_DSP_ENTER       \
  "push {r0, r7}\n"            \
  "push {%[p]}\n"              \
  "ldrd r9, r10, [%[p], #32]\n" \
  "ldr r4, [%[p], #12]\n"      \
  "ldr r8, [%[p], #28]\n"
#define TINYET_DSP_LEAVE \
  "pop {r11}\n"          \
  "stm r11, {r1-r8}\n"   \
  "str r9, [r11, #32]\n" \
  "pop {r0, r7}\n"
#define TINYET_DSP_LOST "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "memory", "cc"
#endif
#define TINYET_DSP_LANE_OPERANDS(g)                                                                            \
  [geometry] "i"((g).taps | (g).stride << 8 | (g).dilation << 16), [run] "i"((g).run),                     \
      [width] "i"((g).width), [unroll] "i"((g).unroll)
#endif

/* Adds all products to the biases of a and b at *weights, and moves that behind the weights. */
TINYET_DSP_INLINE tinyet_sums_dsp tinyet_dot_dsp(const int32_t **weights, const uint32_t *pixels,
                                                 const tinyet_lanes_dsp g) {
  const int32_t *w = *weights;
  tinyet_sums_dsp c;
  c.a3 = *w++;
  c.b3 = *w++;
#if TINYET_DSP_ASM && defined(__clang__)
  struct {
    tinyet_sums_dsp sums;
    const int32_t *w;
    uintptr_t x, end;
  } state;
  const void *const p = &state;
  state.sums.a3 = c.a3;
  state.sums.b3 = c.b3;
  state.w = w;
  state.x = (uintptr_t)(pixels + tinyet_tap_dsp(g, g.taps - 1) + 2);
  /* r7 may be the frame pointer, which is not to be named among the registers that are lost. p is in r0 or r7. */
  if (g.unroll == g.lanes * g.taps) {
    __asm__ volatile(TINYET_DSP_GEOMETRY TINYET_DSP_ENTER TINYET_DSP_ALL_TAPS TINYET_DSP_LEAVE
                     :
                     : [p] "r"(p), TINYET_DSP_LANE_OPERANDS(g)
                     : TINYET_DSP_LOST);
  } else {
    state.end = state.x + 4u * (uint32_t)(g.lanes * g.width);
    __asm__ volatile(TINYET_DSP_GEOMETRY TINYET_DSP_ENTER "ldr r11, [%[p], #40]\n"
                                                          "push {r11}\n" TINYET_DSP_TAPS_IN_LOOP TINYET_DSP_LEAVE
                     :
                     : [p] "r"(p), TINYET_DSP_LANE_OPERANDS(g)
                     : TINYET_DSP_LOST);
  }
  c = state.sums;
  w = state.w;
#elif TINYET_DSP_ASM
  uintptr_t x = (uintptr_t)(pixels + tinyet_tap_dsp(g, g.taps - 1) + 2);
  uint32_t u, v, y, z;
  if (g.unroll == g.lanes * g.taps) {
    __asm__ volatile(TINYET_DSP_GEOMETRY TINYET_DSP_ALL_TAPS
                     : [a0] "=&r"(c.a0), [a1] "=&r"(c.a1), [a2] "=&r"(c.a2), [a3] "+r"(c.a3), [b0] "=&r"(c.b0),
                       [b1] "=&r"(c.b1), [b2] "=&r"(c.b2), [b3] "+r"(c.b3), [w] "+r"(w), [x] "+r"(x), [u] "=&r"(u),
                       [v] "=&r"(v), [y] "=&r"(y), [z] "=&r"(z)
                     : TINYET_DSP_LANE_OPERANDS(g)
                     : "memory");
  } else {
    y = (uint32_t)x + 4u * (uint32_t)(g.lanes * g.width); /* the end, which has no register in the loop */
    __asm__ volatile(TINYET_DSP_GEOMETRY "push {%[y]}\n" TINYET_DSP_TAPS_IN_LOOP
                     : [a0] "=&r"(c.a0), [a1] "=&r"(c.a1), [a2] "=&r"(c.a2), [a3] "+r"(c.a3), [b0] "=&r"(c.b0),
                       [b1] "=&r"(c.b1), [b2] "=&r"(c.b2), [b3] "+r"(c.b3), [w] "+r"(w), [x] "+r"(x), [u] "=&r"(u),
                       [v] "=&r"(v), [y] "+r"(y), [z] "=&r"(z)
                     : TINYET_DSP_LANE_OPERANDS(g)
                     : "memory", "cc");
  }
#else
  c.a0 = c.a1 = c.a2 = c.a3;
  c.b0 = c.b1 = c.b2 = c.b3;
  for (int32_t lane = 0; lane < g.lanes; lane++, pixels += g.width) {
    for (int32_t tap = 0; tap < g.taps; tap++) {
      const uint32_t *const x = pixels + tinyet_tap_dsp(g, tap);
      const uint32_t word = (uint32_t)*w++;
      const uint32_t u = tinyet_even_bytes_dsp(word), v = tinyet_odd_bytes_dsp(word);
      c.a0 = tinyet_smlad_dsp(u, x[0], c.a0);
      c.b0 = tinyet_smlad_dsp(v, x[0], c.b0);
      c.a1 = tinyet_smlad_dsp(u, x[1], c.a1);
      c.b1 = tinyet_smlad_dsp(v, x[1], c.b1);
      c.a2 = tinyet_smlad_dsp(u, x[2], c.a2);
      c.b2 = tinyet_smlad_dsp(v, x[2], c.b2);
      c.a3 = tinyet_smlad_dsp(u, x[3], c.a3);
      c.b3 = tinyet_smlad_dsp(v, x[3], c.b3);
    }
  }
#endif
  *weights = w;
  return c;
}

/* The output of a sum. */
TINYET_DSP_INLINE int8_t tinyet_lane_round_dsp(int32_t sum, int32_t multiplier, int32_t offset, int32_t shift,
                                               const tinyet_rounding_dsp rounding) {
  sum = tinyet_shift_left(sum, tinyet_before_dsp(shift, rounding));
  return tinyet_round_shifted_dsp(sum, multiplier, offset, shift, rounding);
}

/* Two channels of four pixels, which lie `step` bytes apart in the output; only channel a where `pair` is 0. */
TINYET_DSP_INLINE const int32_t *tinyet_channels_dsp(const int32_t *w, const uint32_t *pixels, int8_t *out,
                                                     const int32_t step, const int pair, const tinyet_lanes_dsp g,
                                                     const tinyet_rounding_dsp rounding) {
  const tinyet_sums_dsp c = tinyet_dot_dsp(&w, pixels, g);
  const int32_t ma = w[0], mb = w[1], oa = w[2], ob = w[3], sa = w[4], sb = w[5];
  out[0] = tinyet_lane_round_dsp(c.a0, ma, oa, sa, rounding);
  out[step] = tinyet_lane_round_dsp(c.a1, ma, oa, sa, rounding);
  out[2 * step] = tinyet_lane_round_dsp(c.a2, ma, oa, sa, rounding);
  out[3 * step] = tinyet_lane_round_dsp(c.a3, ma, oa, sa, rounding);
  if (pair) {
    out[1] = tinyet_lane_round_dsp(c.b0, mb, ob, sb, rounding);
    out[step + 1] = tinyet_lane_round_dsp(c.b1, mb, ob, sb, rounding);
    out[2 * step + 1] = tinyet_lane_round_dsp(c.b2, mb, ob, sb, rounding);
    out[3 * step + 1] = tinyet_lane_round_dsp(c.b3, mb, ob, sb, rounding);
  }
  return w + 6;
}

/* Words that hold `channels` channels of one pixel: pairs (0, 2), (1, 3), (4, 6), … and what is left in order. */
TINYET_DSP_INLINE int32_t tinyet_int16x2_count_dsp(int32_t channels) { return channels / 4 * 2 + (channels % 4 + 1) / 2; }

/* One pixel, widened, into every `width`-th word. */
TINYET_DSP_INLINE void tinyet_widen_dsp(uint32_t *to, const int8_t *from, const int32_t channels, const int32_t width) {
#pragma GCC unroll 4
  for (int32_t c = 0; c < (channels & ~3); c += 4) {
    const uint32_t word = tinyet_load_dsp(from + c);
    to[0] = tinyet_even_bytes_dsp(word);
    to[width] = tinyet_odd_bytes_dsp(word);
    to += 2 * width;
  }
  from += channels & ~3;
  if ((channels & 3) > 1) {
    *to = tinyet_low_int16x2_dsp((uint32_t)(int32_t)from[0], (uint32_t)(int32_t)from[1]);
    to += width;
    from += 2;
  }
  if (channels & 1) {
    *to = (uint32_t)(int32_t)from[0]; /* the upper half meets a weight of zero */
  }
}

/* `count` times one value into every `width`-th word. */
TINYET_DSP_INLINE void tinyet_fill_dsp(uint32_t *to, uint32_t value, const int32_t count, const int32_t width) {
  for (const uint32_t *const end = to + count * width; to != end; to += width) {
    *to = value;
  }
}

/* What a specialised convolution is made for; literals. */
typedef struct {
  int32_t batch, in_h, in_w, in_c;
  int32_t out_h, out_w, out_c;
  int32_t kernel_h, kernel_w;
  int32_t stride_h, stride_w, dilation_h, dilation_w;
  int32_t pad_top, pad_left;
  int32_t in_pixel_stride, out_pixel_stride; /* bytes from pixel to pixel: the channels, and what else lies between */
  int32_t zero_point;          /* what padding reads as */
  int32_t unroll;
} tinyet_conv2d_shape_dsp;

#endif
