/* SPDX-License-Identifier: Apache-2.0 */
/* The multiply loop of convolutions, 2x2: two pixels' patches of int16_t by two channels' weights of int8_t. Patches are
 * interleaved in pairs, x0 x1 y0 y1 x2 x3 y2 y3 ..., and weights come as bytes a0 b0 a1 b1 of the two channels, so that one
 * load of weights and one of values feed eight products. */
#ifndef TINYET_DOT_2X2_H
#define TINYET_DOT_2X2_H

#include "tinyet_int16x2.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Position of element k of pixel 0 in a patch, in halves; pixel 1 is two halves further. */
static inline int32_t tinyet_im2col_index(int32_t k) { return (k >> 1) * 4 + (k & 1); }

/* Adds `steps` pairs of products to the sums a by x, a by y, b by x, b by y; gives the weights behind them. */
static inline const TINYET_ROM int8_t *tinyet_dot_2x2(const TINYET_ROM int8_t *w, const int16_t *patch, int32_t steps,
                                                      int32_t sums[4]) {
  int32_t ax = sums[0], ay = sums[1], bx = sums[2], by = sums[3];
#if TINYET_HAS_SIMD32
  const tinyet_int16x2 *p = (const tinyet_int16x2 *)(const void *)patch;
#define TINYET_DOT_STEP(i)                                                 \
  do {                                                                     \
    const int32_t x = p[2 * (i)], y = p[2 * (i) + 1];                      \
    const uint32_t word = tinyet_load4(w + 4 * (i));                       \
    const int32_t a = tinyet_even_bytes(word), b = tinyet_odd_bytes(word); \
    ax = tinyet_mac_int16x2(a, x, ax), ay = tinyet_mac_int16x2(a, y, ay);      \
    bx = tinyet_mac_int16x2(b, x, bx), by = tinyet_mac_int16x2(b, y, by);      \
  } while (0)
  for (; steps >= 4; steps -= 4) {
    TINYET_DOT_STEP(0);
    TINYET_DOT_STEP(1);
    TINYET_DOT_STEP(2);
    TINYET_DOT_STEP(3);
    p += 8;
    w += 16;
  }
  for (; steps > 0; steps--) {
    TINYET_DOT_STEP(0);
    p += 2;
    w += 4;
  }
#undef TINYET_DOT_STEP
#else
  for (; steps > 0; steps--) {
    int32_t x = patch[0], y = patch[2], a = w[0], b = w[1];
    ax += a * x, ay += a * y, bx += b * x, by += b * y;
    x = patch[1], y = patch[3], a = w[2], b = w[3];
    ax += a * x, ay += a * y, bx += b * x, by += b * y;
    patch += 4;
    w += 4;
  }
#endif
  sums[0] = ax, sums[1] = ay, sums[2] = bx, sums[3] = by;
  return w;
}

#ifdef __cplusplus
}
#endif

#endif
