/* SPDX-License-Identifier: Apache-2.0 */
/* Planes of int16 (chw: channel by channel) for the depthwise kernels of cores with DSP instructions: see tinyet_dsp.h.
 *
 * Two or four channels at a time (a group) are taken out of the image and widened into as many planes in scratch. Along the
 * axis u, which is contiguous in a plane, two taps are one multiply instruction; u is the width or the height of the image,
 * whichever is cheaper, and v is the other axis. With a dilation d along u a row of a plane has d parts of `part` values, each
 * with every d-th pixel, so that the taps of an output are neighbours: what is P pixels behind the first that any output
 * looks at is value P / d of part P % d. The planes hold the rows of a tile of output rows; tiles share rows, which are
 * moved, where a group of channels is done with before the next one: else they are taken out of the image again. */
#ifndef TINYET_DEPTHWISE_CHW_DSP_H
#define TINYET_DEPTHWISE_CHW_DSP_H

#include "tinyet_dsp.h"

/* Sizes in pixels, steps in bytes; literals. */
typedef struct {
  int32_t batch, channels, group, multiplier; /* multiplier: output channels of one of the input */
  int32_t in_u, in_v, in_step_u, in_step_v;
  int32_t out_u, out_v, out_step_u, out_step_v, out_two_u; /* out_two_u: to the next but one along u */
  int32_t pairs; /* whether the output is as tinyet_conv2d_s8_w16_nhw2c2_2x2_dsp takes its input; along the width, that is even */
  int32_t kernel_u, kernel_v, stride_u, stride_v, dilation_u, dilation_v;
  int32_t pad_u, pad_v; /* before the first pixel */
  int32_t zero_point, out_zero_point;
  int32_t part;  /* values, an even number; dilation_u of them are a row of a plane */
  int32_t apart; /* outputs so far apart along u look at the same part, `between` values from each other */
  int32_t between;
  int32_t tile;     /* output rows */
  int32_t by_tiles; /* all groups of a tile one after another, so that the output may lie over the input's first rows */
} tinyet_depthwise_shape_dsp;

/* Words of a plane's row. */
TINYET_DSP_INLINE int32_t tinyet_row_words_dsp(const tinyet_depthwise_shape_dsp s) { return s.dilation_u * s.part / 2; }

/* Input rows of a tile. */
TINYET_DSP_INLINE int32_t tinyet_tile_rows_dsp(const tinyet_depthwise_shape_dsp s) {
  return (s.tile - 1) * s.stride_v + (s.kernel_v - 1) * s.dilation_v + 1;
}

/* The offset of the rounding (tinyet_dsp.h) of a channel whose output depends on its sum: known by the shift. */
TINYET_DSP_INLINE int32_t tinyet_offset_dsp(int32_t shift, int32_t zero_point, const tinyet_rounding_dsp rounding) {
  if (rounding.form == TINYET_DSP_ONE_SIDED) {
    return (1 << (rounding.exponent - 1)) + zero_point * (1 << rounding.exponent) + (1 << (shift - 2));
  }
  return rounding.form == TINYET_DSP_TWO_SIDED ? (2 * zero_point + 1) * (1 << (shift - 1)) : zero_point;
}

/* Bytes from pixel to pixel: one of the steps, the other one is that of a row of them. */
TINYET_DSP_INLINE int32_t tinyet_pixel_stride_dsp(int32_t step_u, int32_t step_v) {
  return step_u < step_v ? step_u : step_v;
}

/* Where the outputs of a channel begin. */
TINYET_DSP_INLINE int32_t tinyet_out_byte_dsp(int32_t channel, const tinyet_depthwise_shape_dsp s) {
  return s.pairs ? (channel / 4 * 2 + channel % 2) * 8 + channel / 2 % 2 * 2 : channel;
}

/* The channels of a group, of one pixel. */
TINYET_DSP_INLINE uint32_t tinyet_load_group_dsp(const int8_t *from, const int32_t group) {
  return group == 4 ? tinyet_load_dsp(from) : tinyet_load_int8x2_dsp(from);
}

/* Two pixels into a word of each plane. */
TINYET_DSP_INLINE void tinyet_plane_word_dsp(uint32_t *to, uint32_t first, uint32_t second, const int32_t plane,
                                             const int32_t group) {
  const uint32_t low = tinyet_low_int16x2_dsp(first, second);
  to[0] = tinyet_even_bytes_dsp(low);
  to[plane] = tinyet_odd_bytes_dsp(low);
  if (group == 4) {
    const uint32_t high = tinyet_high_int16x2_dsp(first, second);
    to[2 * plane] = tinyet_even_bytes_dsp(high);
    to[3 * plane] = tinyet_odd_bytes_dsp(high);
  }
}

#if TINYET_DSP_ASM
/* Word `number` of `words`. Written out for each, not repeated by the assembler: the compiler counts lines, to know how far a
 * branch over them is. */
/* clang-format off */
#define TINYET_DSP_PLANE_WORD(number) \
  ".if %c[group] == 4\n" \
  "ldr %[a], [%[from], #2 * " number " * %c[step]]\n" \
  "ldr %[b], [%[from], #(2 * " number " + 1) * %c[step]]\n" \
  "pkhbt %[c], %[a], %[b], lsl #16\n" \
  "pkhtb %[a], %[b], %[a], asr #16\n" \
  "sxtb16 %[b], %[c]\n" \
  "sxtb16 %[c], %[c], ror #8\n" \
  "sxtb16 %[d], %[a]\n" \
  "sxtb16 %[a], %[a], ror #8\n" \
  "str %[d], [%[to], #8 * %c[plane]]\n" \
  "str %[a], [%[to], #12 * %c[plane]]\n" \
  ".else\n" \
  "ldrh %[c], [%[from], #2 * " number " * %c[step]]\n" \
  "ldrh %[b], [%[from], #(2 * " number " + 1) * %c[step]]\n" \
  "pkhbt %[c], %[c], %[b], lsl #16\n" \
  "sxtb16 %[b], %[c]\n" \
  "sxtb16 %[c], %[c], ror #8\n" \
  ".endif\n" \
  "str %[c], [%[to], #4 * %c[plane]]\n" \
  "str %[b], [%[to]], #4\n"
/* Word `number` and the one behind it, whose pixels `load` loads. */
#define TINYET_DSP_PLANE_TWO(number, load) \
  load " %[a], [%[from], #2 * " number " * %c[step]]\n" \
  load " %[b], [%[from], #(2 * " number " + 1) * %c[step]]\n" \
  load " %[d], [%[from], #(2 * " number " + 2) * %c[step]]\n" \
  load " %[e], [%[from], #(2 * " number " + 3) * %c[step]]\n" \
  "pkhbt %[c], %[a], %[b], lsl #16\n" \
  "pkhbt %[f], %[d], %[e], lsl #16\n" \
  ".if %c[group] == 4\n" \
  "pkhtb %[a], %[b], %[a], asr #16\n" \
  "pkhtb %[d], %[e], %[d], asr #16\n" \
  "sxtb16 %[b], %[a], ror #8\n" \
  "sxtb16 %[e], %[d], ror #8\n" \
  "strd %[b], %[e], [%[far], #4 * %c[plane]]\n" \
  "sxtb16 %[b], %[a]\n" \
  "sxtb16 %[e], %[d]\n" \
  "strd %[b], %[e], [%[far]], #8\n" \
  ".endif\n" \
  "sxtb16 %[b], %[c], ror #8\n" \
  "sxtb16 %[e], %[f], ror #8\n" \
  "strd %[b], %[e], [%[to], #4 * %c[plane]]\n" \
  "sxtb16 %[b], %[c]\n" \
  "sxtb16 %[e], %[f]\n" \
  "strd %[b], %[e], [%[to]], #8\n"
#define TINYET_DSP_PLANE_WORDS(number, next) \
  ".if %c[words] > " next " && %c[plane] < 256\n" \
  ".if %c[group] == 4\n" \
  TINYET_DSP_PLANE_TWO(number, "ldr") \
  ".else\n" \
  TINYET_DSP_PLANE_TWO(number, "ldrh") \
  ".endif\n" \
  ".else\n" \
  ".if %c[words] > " number "\n" \
  TINYET_DSP_PLANE_WORD(number) \
  ".endif\n" \
  ".if %c[words] > " next "\n" \
  TINYET_DSP_PLANE_WORD(next) \
  ".endif\n" \
  ".endif\n"

/* `words` words of each plane, which are two pixels each, `step` bytes apart: literals, at most 6, and (2 * words - 1) * step
 * and 12 * plane below 4096. What `to` becomes. */
TINYET_DSP_INLINE uint32_t *tinyet_plane_turn_dsp(uint32_t *to, const int8_t *from, const int32_t words, const int32_t step,
                                                  const int32_t plane, const int32_t group) {
  uint32_t a, b, c, d, e, f, *far = to + 2 * plane; /* the third plane: a store of two words does not reach far */
  __asm__ volatile(
      TINYET_DSP_PLANE_WORDS("0", "1")
      TINYET_DSP_PLANE_WORDS("2", "3")
      TINYET_DSP_PLANE_WORDS("4", "5")
      : [to] "+&r"(to), [far] "+&r"(far), [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d), [e] "=&r"(e),
        [f] "=&r"(f)
      : [from] "r"(from), [words] "i"(words), [step] "i"(step), [plane] "i"(plane), [group] "i"(group)
      : "memory");
  return to;
}
/* clang-format on */
#endif

/* `words` words of each plane: two pixels each, `step` bytes apart. Literals, for the machine code, where `known` says so. */
TINYET_DSP_INLINE void tinyet_plane_words_dsp(uint32_t *to, const int8_t *from, const int32_t words, const int32_t step,
                                              const int32_t plane, const int32_t group, const int32_t known) {
#if TINYET_DSP_ASM
  const int32_t most = (4095 / step + 1) / 2; /* words whose pixels one address reaches */
  const int32_t many = words % 6 == 0 ? 6 : (words % 4 == 0 ? 4 : (words % 5 == 0 ? 5 : (words % 3 == 0 ? 3 : 4)));
  const int32_t even = words <= 6 ? words : many;
  const int32_t unroll = even < most ? even : most;
  if (known && unroll > 0 && 12 * plane < 4096) {
    for (int32_t i = 0; i < words / unroll; i++) {
      to = tinyet_plane_turn_dsp(to, from, unroll, step, plane, group);
      from += 2 * unroll * step;
    }
    if (words % unroll != 0) {
      tinyet_plane_turn_dsp(to, from, words % unroll, step, plane, group);
    }
    return;
  }
#else
  (void)known;
#endif
  for (int32_t i = 0; i < words; i++) {
    tinyet_plane_word_dsp(to++, tinyet_load_group_dsp(from, group), tinyet_load_group_dsp(from + step, group), plane,
                          group);
    from += 2 * step;
  }
}

/* `count` pixels, `step` bytes apart, into the values from `first` on of a row; what shares a word with them is blank. */
TINYET_DSP_INLINE void tinyet_plane_values_dsp(uint32_t *to, const int8_t *from, int32_t first, int32_t count,
                                               const int32_t step, const int32_t plane, const int32_t group,
                                               const uint32_t blank, const int32_t known) {
  to += first / 2;
  if (first % 2 != 0) {
    tinyet_plane_word_dsp(to++, blank, tinyet_load_group_dsp(from, group), plane, group);
    from += step;
    count--;
  }
  if (count > 1) {
    tinyet_plane_words_dsp(to, from, count / 2, step, plane, group, known);
  }
  if (count % 2 != 0) {
    tinyet_plane_word_dsp(to + count / 2, tinyet_load_group_dsp(from + (count - 1) * step, group), blank, plane, group);
  }
}

/* One input row of a group into the row `to` of its planes; what is outside the image stays. */
TINYET_DSP_INLINE void tinyet_plane_row_dsp(uint32_t *to, const int8_t *from, const int32_t plane, const uint32_t blank,
                                            const tinyet_depthwise_shape_dsp s) {
  const int32_t d = s.dilation_u, reach = (s.out_u - 1) * s.stride_u + (s.kernel_u - 1) * d + 1;
  const int32_t end = reach < s.pad_u + s.in_u ? reach : s.pad_u + s.in_u;
  for (int32_t part = 0; part < d; part++) {
    const int32_t first = s.pad_u > part ? (s.pad_u - part + d - 1) / d : 0;
    const int32_t count = (end - part + d - 1) / d - first;
    if (count > 0) {
      tinyet_plane_values_dsp(to + part * s.part / 2, from + (part + first * d - s.pad_u) * s.in_step_u, first, count,
                              d * s.in_step_u, plane, s.group, blank, d == 1);
    }
  }
}

/* Both halves of all planes, once: what is never in the image. */
TINYET_DSP_INLINE void tinyet_blank_planes_dsp(uint32_t *planes, const tinyet_depthwise_shape_dsp s) {
  const uint32_t blank = tinyet_both_dsp(s.zero_point);
  for (int32_t i = 0; i < s.group * tinyet_tile_rows_dsp(s) * tinyet_row_words_dsp(s); i++) {
    planes[i] = blank;
  }
}

typedef struct {
  uint32_t words[4];
} tinyet_four_words_dsp;

/* `count` words, to a place before them. */
TINYET_DSP_INLINE void tinyet_move_words_dsp(uint32_t *to, const uint32_t *from, const int32_t count) {
  for (int32_t i = 0; i < count / 4; i++) {
    tinyet_four_words_dsp four;
    memcpy(&four, from + 4 * i, sizeof four);
    memcpy(to + 4 * i, &four, sizeof four);
  }
  for (int32_t i = count / 4 * 4; i < count; i++) {
    to[i] = from[i];
  }
}

/* The tile of output rows from `top` on, of the group of channels at `input`. */
TINYET_DSP_INLINE void tinyet_fill_planes_dsp(uint32_t *planes, const int8_t *input, int32_t top,
                                              const tinyet_depthwise_shape_dsp s) {
  const int32_t row = tinyet_row_words_dsp(s), rows = tinyet_tile_rows_dsp(s), plane = rows * row;
  const int32_t kept = s.by_tiles ? 0 : rows - s.tile * s.stride_v; /* rows that the next tile needs, too */
  const uint32_t blank = tinyet_both_dsp(s.zero_point), blank_pixel = ((uint32_t)s.zero_point & 0xffu) * 0x01010101u;
  int32_t r = 0;
  if (s.tile < s.out_v && kept > 0 && top > 0) {
    for (int32_t k = 0; k < s.group; k++) {
      TINYET_DSP_UNKNOWN(k);
      tinyet_move_words_dsp(planes + k * plane, planes + k * plane + (rows - kept) * row, kept * row);
    }
    r = kept;
  }
  for (; r < rows; r++) {
    const int32_t v = top * s.stride_v - s.pad_v + r;
    uint32_t *const to = planes + r * row;
    if ((uint32_t)v < (uint32_t)s.in_v) {
      tinyet_plane_row_dsp(to, input + v * s.in_step_v, plane, blank_pixel, s);
    } else if (s.tile < s.out_v) {
      for (int32_t i = 0; i < row; i++) {
#pragma GCC unroll 4
        for (int32_t k = 0; k < s.group; k++) {
          to[k * plane + i] = blank;
        }
      }
    }
  }
}

/* The output rows of the tile at `top`. */
TINYET_DSP_INLINE int32_t tinyet_rows_left_dsp(int32_t top, const tinyet_depthwise_shape_dsp s) {
  const int32_t left = s.out_v - top;
  return s.out_v % s.tile == 0 || left > s.tile ? s.tile : left;
}

/* The group of channels behind that at `channel`: the last one overlaps the one before where it has fewer. */
TINYET_DSP_INLINE int32_t tinyet_next_group_dsp(int32_t channel, const tinyet_depthwise_shape_dsp s) {
  const int32_t next = channel + s.group;
  return s.channels % s.group != 0 && next < s.channels && next > s.channels - s.group ? s.channels - s.group : next;
}

/* For every tile from row `top` on of every group of channels from `channel` on, the statement `tile_of_group`. */
#define TINYET_DSP_OVER_TILES(s, tile_of_group)                                                        \
  if ((s).by_tiles) {                                                                                  \
    for (int32_t top = 0; top < (s).out_v; top += (s).tile) {                                          \
      for (int32_t channel = 0; channel < (s).channels; channel = tinyet_next_group_dsp(channel, s)) { \
        tile_of_group;                                                                                 \
      }                                                                                                \
    }                                                                                                  \
  } else {                                                                                             \
    for (int32_t channel = 0; channel < (s).channels; channel = tinyet_next_group_dsp(channel, s)) {   \
      for (int32_t top = 0; top < (s).out_v; top += (s).tile) {                                        \
        tile_of_group;                                                                                 \
      }                                                                                                \
    }                                                                                                  \
  }

#endif
