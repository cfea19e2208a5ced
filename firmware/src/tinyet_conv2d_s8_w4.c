/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d.h"
#include "tinyet_im2col.h"
#include "tinyet_int4.h"

/* As tinyet_conv2d_s8.c, but for the weights: bytes a0 b0 a1 b1 of two channels in the low halves, a2 b2 a3 b3 in the high
 * ones. They are unpacked in registers, once for the products of both pixels. */

#if TINYET_HAS_SIMD32

#define PAIRS(word, i)                                                     \
  do {                                                                     \
    const int32_t x = p[2 * (i)], y = p[2 * (i) + 1];                      \
    const int32_t a = tinyet_even_bytes(word), b = tinyet_odd_bytes(word); \
    ax = tinyet_mac_int16x2(a, x, ax), ay = tinyet_mac_int16x2(a, y, ay);      \
    bx = tinyet_mac_int16x2(b, x, bx), by = tinyet_mac_int16x2(b, y, by);      \
  } while (0)
#define BLOCK(i)                                                                         \
  do {                                                                                   \
    const uint32_t word = tinyet_load4(w + 4 * (i));                                     \
    const uint32_t first = tinyet_low_nibbles(word), second = tinyet_high_nibbles(word); \
    PAIRS(first, 2 * (i));                                                               \
    PAIRS(second, 2 * (i) + 1);                                                          \
  } while (0)

/* `blocks` of four elements for two pixels and two channels: sums of a by x, a by y, b by x, b by y. */
static inline const TINYET_ROM int8_t *dot_2x2(const TINYET_ROM int8_t *w, const int16_t *patch, int32_t blocks,
                                               int32_t sums[4]) {
  int32_t ax = 0, ay = 0, bx = 0, by = 0;
  const tinyet_int16x2 *p = (const tinyet_int16x2 *)(const void *)patch;
  for (; blocks >= 2; blocks -= 2) {
    BLOCK(0);
    BLOCK(1);
    p += 8;
    w += 8;
  }
  if (blocks != 0) {
    BLOCK(0);
    w += 4;
  }
  sums[0] = tinyet_nibble_sum(ax), sums[1] = tinyet_nibble_sum(ay);
  sums[2] = tinyet_nibble_sum(bx), sums[3] = tinyet_nibble_sum(by);
  return w;
}

#undef BLOCK
#undef PAIRS

#else

/* One channel: where registers are few, its two sums are all that stay in them. */
static inline void dot_2x1(const TINYET_ROM int8_t *w, const int16_t *patch, int32_t blocks, int32_t sums[2]) {
  int32_t x = 0, y = 0;
  for (; blocks > 0; blocks--) {
    tinyet_extent first = tinyet_low_nibble(w[0]), second = tinyet_high_nibble(w[0]);
    x += first * patch[0], y += first * patch[2];
    x += second * patch[4], y += second * patch[6];
    first = tinyet_low_nibble(w[2]), second = tinyet_high_nibble(w[2]);
    x += first * patch[1], y += first * patch[3];
    x += second * patch[5], y += second * patch[7];
    w += 4;
    patch += 8;
  }
  sums[0] = x, sums[1] = y;
}

static inline const TINYET_ROM int8_t *dot_2x2(const TINYET_ROM int8_t *w, const int16_t *patch, int32_t blocks,
                                               int32_t sums[4]) {
  dot_2x1(w, patch, blocks, sums);
  dot_2x1(w + 1, patch, blocks, sums + 2);
  return w + 4 * blocks;
}

#endif

/* One channel of two pixels. */
static inline void finish(int32_t c, int32_t sum_x, int32_t sum_y, int8_t *out_x, int8_t *out_y,
                          const tinyet_conv2d_s8_quant *q) {
  const int32_t bias = q->bias[c], multiplier = q->multiplier[c], form = q->shift[c];
  const int32_t zero_point = q->out_zero_point, low = q->clamp_low, high = q->clamp_high;
  const int32_t x = tinyet_requantize_form(bias + sum_x, multiplier, form, zero_point);
  const int32_t y = tinyet_requantize_form(bias + sum_y, multiplier, form, zero_point);
  out_x[c] = (int8_t)tinyet_clamp(x, low, high);
  out_y[c] = (int8_t)tinyet_clamp(y, low, high);
}

/* Channels first ... first + count - 1 of two pixels; both outputs may be the same. */
static void two_pixels(const int16_t *patch, const TINYET_ROM int8_t *w, int8_t *out_x, int8_t *out_y, int32_t blocks,
                       int32_t first, int32_t count, const tinyet_conv2d_s8_quant *q) {
  const int32_t end = first + count;
  for (int32_t c = first; c < end; c += 2) {
    int32_t sums[4];
    w = dot_2x2(w, patch, blocks, sums);
    finish(c, sums[0], sums[1], out_x, out_y, q);
    if (c + 1 < end) { /* an odd last channel has zeros for a partner */
      finish(c + 1, sums[2], sums[3], out_x, out_y, q);
    }
  }
}

enum { STEP = 4 };
#define KERNEL tinyet_conv2d_s8_w4
#define KERNEL_1X1 tinyet_conv2d_1x1_s8_w4
#include "tinyet_conv2d_s8_body.h"
