/* SPDX-License-Identifier: Apache-2.0 */
/* The multiply loop of layers in int16, 1x4: a row of int16_t inputs by four outputs' weights of int8_t. */
#ifndef TINYET_DOT_1X4_S16_H
#define TINYET_DOT_1X4_S16_H

#include "tinyet_int16x2.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Four outputs at once: one load of a pair of inputs feeds eight products. Adds `steps` pairs; gives the weights behind
 * them. Not inlined, because the loop needs nearly all registers. */
static __attribute__((noinline, unused)) const TINYET_ROM int8_t *
tinyet_dot_1x4_s16(const int16_t *x, const TINYET_ROM int8_t *w, int32_t steps, int32_t sums[4]) {
  int32_t a = 0, b = 0, c = 0, d = 0;
#if TINYET_HAS_SIMD32
  for (; steps > 0; steps--) {
    const int32_t pair = (int32_t)tinyet_load4(x);
    const uint32_t first = tinyet_load4(w), second = tinyet_load4(w + 4);
    a = tinyet_mac_int16x2(tinyet_even_bytes(first), pair, a);
    b = tinyet_mac_int16x2(tinyet_odd_bytes(first), pair, b);
    c = tinyet_mac_int16x2(tinyet_even_bytes(second), pair, c);
    d = tinyet_mac_int16x2(tinyet_odd_bytes(second), pair, d);
    x += 2;
    w += 8;
  }
#else
  for (; steps > 0; steps--) {
    const int32_t x0 = x[0], x1 = x[1];
    a += x0 * w[0] + x1 * w[2];
    b += x0 * w[1] + x1 * w[3];
    c += x0 * w[4] + x1 * w[6];
    d += x0 * w[5] + x1 * w[7];
    x += 2;
    w += 8;
  }
#endif
  sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
  return w;
}

/* Adds the sums of a whole row to the totals, at most `block` pairs in 32 bits; gives the weights behind them. */
static inline const TINYET_ROM int8_t *tinyet_totals_1x4_s16(const int16_t *x, const TINYET_ROM int8_t *w,
                                                             int32_t depth, int32_t block, int64_t total[4]) {
  for (int32_t left = depth / 2; left > 0; left -= block) {
    const int32_t now = left < block ? left : block;
    int32_t sums[4];
    w = tinyet_dot_1x4_s16(x, w, now, sums);
    x += 2 * now;
    total[0] += sums[0], total[1] += sums[1], total[2] += sums[2], total[3] += sums[3];
  }
  if ((depth & 1) != 0) { /* half a pair: there is no input beyond it to load */
    const int32_t last = *x;
    total[0] += last * w[0], total[1] += last * w[1], total[2] += last * w[4], total[3] += last * w[5];
    w += 8;
  }
  return w;
}

#ifdef __cplusplus
}
#endif

#endif
