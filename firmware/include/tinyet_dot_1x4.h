/* SPDX-License-Identifier: Apache-2.0 */
/* The multiply loop of fully connected layers, 1x4: a row of int8_t inputs by four outputs' weights. */
#ifndef TINYET_DOT_1X4_H
#define TINYET_DOT_1X4_H

#include "tinyet_int16x2.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Four outputs at once: one load of the input feeds four multiply-accumulates. Weights are interleaved, four bytes of each
 * output in turn, so that they are read front to back; `blocks` of four inputs, then `rest` of them one by one. Not
 * inlined, because the loop needs nearly all registers. */
static __attribute__((noinline, unused)) const TINYET_ROM int8_t *
tinyet_dot_1x4(const int8_t *x, const TINYET_ROM int8_t *w, int32_t blocks, int32_t rest, int32_t sums[4]) {
  int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
#if TINYET_HAS_SIMD32
#define ROW(sum, i)                                                \
  do {                                                             \
    const uint32_t weights = tinyet_load4(w + 4 * (i));            \
    sum = tinyet_mac_int16x2(even, tinyet_even_bytes(weights), sum); \
    sum = tinyet_mac_int16x2(odd, tinyet_odd_bytes(weights), sum);   \
  } while (0)
#define BLOCK()                                                                              \
  do {                                                                                       \
    const uint32_t values = tinyet_load4(x);                                                 \
    const int32_t even = tinyet_even_bytes(values), odd = tinyet_odd_bytes(values);          \
    ROW(a, 0);                                                                               \
    ROW(b, 1);                                                                               \
    ROW(c, 2);                                                                               \
    ROW(d, 3);                                                                               \
    x += 4;                                                                                  \
    w += 16;                                                                                 \
    __asm__("" ::: "memory"); /* the next block's loads stay behind it: registers are few */ \
  } while (0)
  if ((blocks & 1) != 0) {
    BLOCK();
  }
  for (blocks >>= 1; blocks != 0; blocks--) {
    BLOCK();
    BLOCK();
  }
#undef BLOCK
#undef ROW
#else
  for (; blocks != 0; blocks--) {
    const int32_t x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    a += x0 * w[0] + x1 * w[1] + x2 * w[2] + x3 * w[3];
    b += x0 * w[4] + x1 * w[5] + x2 * w[6] + x3 * w[7];
    c += x0 * w[8] + x1 * w[9] + x2 * w[10] + x3 * w[11];
    d += x0 * w[12] + x1 * w[13] + x2 * w[14] + x3 * w[15];
    x += 4;
    w += 16;
  }
#endif
  for (; rest != 0; rest--) {
    const int32_t value = *x++;
    a += value * w[0], b += value * w[4], c += value * w[8], d += value * w[12];
    w++;
  }
  sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
  return w;
}

#ifdef __cplusplus
}
#endif

#endif
