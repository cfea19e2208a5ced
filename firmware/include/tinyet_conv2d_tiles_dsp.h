/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised int8 convolutions of one group whose products, rounding and stores are a printed tile (tinyet/tiles): what is around
 * it, which gathers the inputs of two pixels, or of one.
 *
 * Inputs lie in scratch as pairs of neighbouring bytes of a kernel row (tinyet_widen_dsp), where it is dilated of each tap;
 * for each pair a word of both pixels. Where such bytes are odd in number, the last one is paired with that of the next. The
 * weight stream is that of the tile (tinyet_tile_dsp.h); the last group of channels overlaps the one before where they are no
 * multiple of a group. */
#ifndef TINYET_CONV2D_TILES_DSP_H
#define TINYET_CONV2D_TILES_DSP_H

#include "tinyet_conv2d_dsp.h"
#include "tinyet_tile_dsp.h"

#if TINYET_DSP_ASM
/* Four values of each of two pixels. */
#define TINYET_DSP_WIDEN_TWO         \
  "ldr.w r4, [%[a]], #4\n"           \
  "ldr.w r5, [%[b]], #4\n"           \
  "sxtb16 r2, r4\n"                  \
  "sxtb16 r3, r5\n"                  \
  "sxtb16 r4, r4, ror #8\n"          \
  "sxtb16 r5, r5, ror #8\n"          \
  "stmia.w %[to]!, {r2, r3, r4, r5}\n"
#endif

/* Four times `fours` neighbouring values of two pixels: for each pair a word of both. Where the next ones go. */
TINYET_DSP_INLINE uint32_t *tinyet_widen_two_dsp(uint32_t *to, const int8_t *a, const int8_t *b, const int32_t fours) {
#if TINYET_DSP_ASM
  const int32_t most = fours % 8 == 0 ? 8 : (fours % 7 == 0 ? 7 : (fours % 6 == 0 ? 6 : (fours % 5 == 0 ? 5 : 4)));
  const int32_t turn = fours <= 8 ? fours : most;
  const int8_t *const end = a + 4 * (fours / turn * turn);
  __asm__ volatile(
      TINYET_DSP_LINES
      "1:\n"
      ".rept %c[turn]\n" TINYET_DSP_WIDEN_TWO ".endr\n"
      ".if %c[looped]\n"
      "cmp %[a], %[end]\n"
      "bne 1b\n"
      ".endif\n"
      ".rept %c[rest]\n" TINYET_DSP_WIDEN_TWO ".endr\n"
      : [to] "+&r"(to), [a] "+&r"(a), [b] "+&r"(b) /* the end may be what b is at first */
      : [end] "r"(end), [turn] "i"(turn), [rest] "i"(fours % turn), [looped] "i"(fours / turn > 1)
      : "r2", "r3", "r4", "r5", "memory", "cc");
#else
  for (int32_t i = 0; i < fours; i++, to += 4) {
    tinyet_widen_dsp(to, a + 4 * i, 4, 2);
    tinyet_widen_dsp(to + 1, b + 4 * i, 4, 2);
  }
#endif
  return to;
}

/* Scratch behind the inputs: a kernel row of padding, and one for each pixel that an edge of the image cuts. */
typedef struct {
  int8_t *blank, *cut[2];
} tinyet_edges_dsp;

/* Rows and columns that a kernel spans. */
TINYET_DSP_INLINE int32_t tinyet_span_h_dsp(const tinyet_conv2d_shape_dsp s) { return (s.kernel_h - 1) * s.dilation_h + 1; }
TINYET_DSP_INLINE int32_t tinyet_span_w_dsp(const tinyet_conv2d_shape_dsp s) { return (s.kernel_w - 1) * s.dilation_w + 1; }

/* Whether no kernel reaches over an edge of the image. */
TINYET_DSP_INLINE int tinyet_inside_dsp(const tinyet_conv2d_shape_dsp s) {
  return s.pad_top == 0 && (s.out_h - 1) * s.stride_h + tinyet_span_h_dsp(s) <= s.in_h && s.pad_left == 0 &&
         (s.out_w - 1) * s.stride_w + tinyet_span_w_dsp(s) <= s.in_w;
}

/* Where the bytes lie that a kernel row, or its tap `kx` where it is dilated, sees for a pixel. `whole`: all of the kernel is
 * in the image. */
TINYET_DSP_INLINE const int8_t *tinyet_bytes_of_dsp(const int8_t *input, const int32_t top, const int32_t left,
                                                    const int32_t ky, const int32_t kx, int8_t *cut, const int8_t *blank,
                                                    const int whole, const tinyet_conv2d_shape_dsp s) {
  const int32_t y = top + ky * s.dilation_h, x = left + kx * s.dilation_w;
  const int8_t *const row = input + y * s.in_w * s.in_pixel_stride;
  if (whole) {
    return row + x * s.in_pixel_stride;
  }
  if ((uint32_t)y >= (uint32_t)s.in_h || (s.dilation_w != 1 && (uint32_t)x >= (uint32_t)s.in_w)) {
    return blank;
  }
  if (s.dilation_w == 1 && (x < 0 || x + s.kernel_w > s.in_w)) {
    tinyet_edge_dsp(cut, row, x, s);
    return cut;
  }
  return row + x * s.in_pixel_stride;
}

/* Where the kernel lies for one or two pixels (`at_once`). */
typedef struct {
  int32_t top[2], left[2];
} tinyet_places_dsp;

/* The values being gathered: their destination, and the last of an odd number, which wait for those of the next row. */
typedef struct {
  uint32_t *to, odd[2];
  int32_t waits;
} tinyet_gathered_dsp;

/* What kernel row `ky` sees there, or its tap `kx` where it is dilated. */
TINYET_DSP_INLINE tinyet_gathered_dsp tinyet_gather_row_dsp(tinyet_gathered_dsp g, const int8_t *input, const int32_t ky,
                                                            const int32_t kx, const tinyet_places_dsp p, const int32_t at_once,
                                                            const int whole, const tinyet_edges_dsp edges,
                                                            const tinyet_conv2d_shape_dsp s) {
  const int32_t count = (s.dilation_w == 1 ? s.kernel_w : 1) * s.in_c, second = at_once - 1;
  const int8_t *const a = tinyet_bytes_of_dsp(input, p.top[0], p.left[0], ky, kx, edges.cut[0], edges.blank, whole, s);
  const int8_t *b = a;
  if (at_once == 2) {
    b = tinyet_bytes_of_dsp(input, p.top[1], p.left[1], ky, kx, edges.cut[1], edges.blank, whole, s);
    if (count >= 4) {
      g.to = tinyet_widen_two_dsp(g.to, a, b, count / 4);
    }
  } else {
    tinyet_widen_dsp(g.to, a, count & ~3, 1);
    g.to += count / 4 * 2;
  }
  if ((count & 2) != 0) {
    tinyet_widen_dsp(g.to, a + (count & ~3), 2, 1);
    tinyet_widen_dsp(g.to + second, b + (count & ~3), 2, 1);
    g.to += at_once;
  }
  if ((count & 1) != 0) {
    const uint32_t last_a = (uint32_t)(int32_t)a[count - 1], last_b = (uint32_t)(int32_t)b[count - 1];
    if (g.waits) {
      g.to[0] = tinyet_low_int16x2_dsp(g.odd[0], last_a);
      g.to[second] = tinyet_low_int16x2_dsp(g.odd[1], last_b);
      g.to += at_once;
    } else {
      g.odd[0] = last_a;
      g.odd[1] = last_b;
    }
    g.waits = !g.waits;
  }
  return g;
}

/* All that the kernel sees there, in the order of conv2d_tiles.py. */
TINYET_DSP_INLINE void tinyet_gather_two_dsp(uint32_t *to, const int8_t *input, const tinyet_places_dsp p,
                                             const int32_t at_once, const int whole, const tinyet_edges_dsp edges,
                                             const tinyet_conv2d_shape_dsp s) {
  tinyet_gathered_dsp g = {to, {0, 0}, 0};
  if (whole && at_once == 2 && s.dilation_w == 1 && s.kernel_w * s.in_c % 2 != 0) {
#pragma GCC unroll 3 /* so that it is known which row waits */
    for (int32_t ky = 0; ky < s.kernel_h; ky++) {
      g = tinyet_gather_row_dsp(g, input, ky, 0, p, at_once, whole, edges, s);
    }
  } else {
    for (int32_t ky = 0; ky < s.kernel_h; ky++) {
      for (int32_t kx = 0; kx < (s.dilation_w == 1 ? 1 : s.kernel_w); kx++) {
        g = tinyet_gather_row_dsp(g, input, ky, kx, p, at_once, whole, edges, s);
      }
    }
  }
  if (g.waits) {
    g.to[0] = g.odd[0]; /* the upper half meets a weight of zero */
    g.to[at_once - 1] = g.odd[1];
  }
}

/* The weights as they are in scratch, `to`. */
TINYET_DSP_INLINE const int32_t *tinyet_copied_weights_dsp(int32_t *to, const int32_t *weights, const int32_t words) {
  const int32_t *const end = weights + words / 4 * 4;
  int32_t *at = to;
  for (; weights != end; weights += 4, at += 4) {
    const int32_t a = weights[0], b = weights[1], c = weights[2], d = weights[3];
    at[0] = a;
    at[1] = b;
    at[2] = c;
    at[3] = d;
  }
  for (int32_t i = 0; i < words % 4; i++) {
    at[i] = weights[i];
  }
  return to;
}

/* The printed functions of a layer; literals. */
typedef struct {
  tinyet_tile_function_dsp two, one; /* pixels; without one, the last two of an odd number overlap those before */
  int32_t channels, words;           /* of a group: how many, and words of its weights */
  int32_t pairs;                     /* of input values, those that fill up included */
} tinyet_tiles_dsp;

/* The outputs of the pixels whose inputs are in scratch. */
TINYET_DSP_INLINE void tinyet_outputs_of_tile_dsp(const tinyet_tile_function_dsp tile, const int32_t *weights,
                                                  const uint32_t *pixels, int8_t *out, const tinyet_tiles_dsp tiles,
                                                  const tinyet_conv2d_shape_dsp s) {
  const int32_t whole = s.out_c / tiles.channels;
  tile(weights, pixels, out, out + whole * tiles.channels);
  if (s.out_c % tiles.channels != 0) {
    int8_t *const last = out + s.out_c - tiles.channels;
    tile(weights + whole * tiles.words, pixels, last, last + tiles.channels);
  }
}

/* What the rounding leaves out, of all pixels before `end`. */
TINYET_DSP_INLINE void tinyet_clamp_pixels_dsp(int8_t *end, const tinyet_conv2d_shape_dsp s, const tinyet_rounding_dsp rounding) {
  if (rounding.low > -128 || rounding.high < 127) {
    const int32_t pixels = s.batch * s.out_h * s.out_w, dense = s.out_pixel_stride == s.out_c;
    const int32_t run = dense ? pixels * s.out_c : s.out_c; /* bytes without a gap */
    for (int8_t *first = end - pixels * s.out_pixel_stride; first != end; first += dense ? run : s.out_pixel_stride) {
      for (int8_t *value = first; value != first + run; value++) {
        *value = (int8_t)tinyet_clamp(*value, rounding.low, rounding.high);
      }
    }
  }
}

/* Any convolution of two output pixels at least, any two that follow each other in the output at a time. scratch: 8 bytes a pair
 * of input values, and where a kernel reaches over an edge three times those of a kernel row, or of a tap where it is dilated, in
 * whole words. */
TINYET_DSP_INLINE void tinyet_conv2d_tiles_dsp(const int8_t *input, int8_t *output, void *scratch, const int32_t *weights,
                                               const tinyet_conv2d_shape_dsp s, const tinyet_rounding_dsp rounding,
                                               const tinyet_tiles_dsp tiles) {
  const int32_t together = (s.dilation_w == 1 ? s.kernel_w : 1) * s.in_c;
  const int32_t segments = s.kernel_h * (s.dilation_w == 1 ? 1 : s.kernel_w);
  const int32_t pairs = segments * (together / 2) + (segments * (together % 2) + 1) / 2;
  const int32_t count = s.out_h * s.out_w, room = (together + 3) / 4 * 4;
  const uint32_t last_top = (uint32_t)(s.in_h - tinyet_span_h_dsp(s)), last_left = (uint32_t)(s.in_w - tinyet_span_w_dsp(s));
  const int inside = tinyet_inside_dsp(s), may_be = s.in_h >= tinyet_span_h_dsp(s) && s.in_w >= tinyet_span_w_dsp(s);
  uint32_t *const pixels = (uint32_t *)scratch;
  int8_t *const blank = (int8_t *)(pixels + 2 * tiles.pairs);
  const tinyet_edges_dsp edges = {blank, {blank + room, blank + 2 * room}};
  if (!inside) {
    memset(blank, s.zero_point, (size_t)together);
  }
  for (int32_t n = 0; n < s.batch; n++) {
    int32_t y = 0, x = 0;
    for (int32_t first = 0; first < count; first += 2) {
      const int alone = count % 2 != 0 && first == count - 1;
      tinyet_places_dsp p;
      if (alone && !tiles.one) {
        first = count - 2;
        y = first / s.out_w;
        x = first % s.out_w;
      }
      int8_t *const out = output + first * s.out_pixel_stride;
      for (int32_t j = 0; j < 2; j++) {
        p.top[j] = y * s.stride_h - s.pad_top;
        p.left[j] = x * s.stride_w - s.pad_left;
        if (++x == s.out_w && s.out_h > 1) {
          x = 0;
          y++;
        }
      }
      if (alone && tiles.one) {
        tinyet_gather_two_dsp(pixels, input, p, 1, inside, edges, s);
        if (pairs != tiles.pairs) {
          pixels[pairs] = 0;
        }
        tinyet_outputs_of_tile_dsp(tiles.one, weights, pixels, out, tiles, s);
        continue;
      }
      if (inside || (may_be && (uint32_t)p.top[0] <= last_top && (uint32_t)p.top[1] <= last_top &&
                     (uint32_t)p.left[0] <= last_left && (uint32_t)p.left[1] <= last_left)) {
        tinyet_gather_two_dsp(pixels, input, p, 2, 1, edges, s);
      } else {
        tinyet_gather_two_dsp(pixels, input, p, 2, 0, edges, s);
      }
      if (pairs != tiles.pairs) {
        pixels[2 * pairs] = pixels[2 * pairs + 1] = 0;
      }
      tinyet_outputs_of_tile_dsp(tiles.two, weights, pixels, out, tiles, s);
    }
    input += s.in_h * s.in_w * s.in_pixel_stride;
    output += count * s.out_pixel_stride;
  }
  tinyet_clamp_pixels_dsp(output, s, rounding);
}

/* The same for a pointwise one without padding, of an even number of pixels, whose input lies in pairs already: for each two
 * pixels, for each of their channels c, c + 2 and c + 1, c + 3 a word of the first and one of the second. */
TINYET_DSP_INLINE void tinyet_conv2d_nhw2c2_tiles_dsp(const int8_t *input, int8_t *output, const int32_t *weights,
                                                      const tinyet_conv2d_shape_dsp s, const tinyet_rounding_dsp rounding,
                                                      const tinyet_tiles_dsp tiles) {
  const uint32_t *pixels = (const uint32_t *)(const void *)input;
  for (const int8_t *const end = output + s.out_w * s.out_pixel_stride; output != end; output += 2 * s.out_pixel_stride) {
    tinyet_outputs_of_tile_dsp(tiles.two, weights, pixels, output, tiles, s);
    pixels += s.in_c;
  }
  tinyet_clamp_pixels_dsp(output, s, rounding);
}

#endif
