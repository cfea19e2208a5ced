/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms in fixed point: complex numbers, butterflies, logarithms. */
#ifndef TINYET_FIXED_FFT_H
#define TINYET_FIXED_FFT_H

#include <string.h>

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__)
#define TINYET_WORD_TIMES_HALF 1
#else
#define TINYET_WORD_TIMES_HALF 0
#endif

/* Of butterflies of 3 and of 5, 15 bits behind the point: sines and cosines of thirds and fifths of a turn. */
#define TINYET_FFT_SIXTY 28378
#define TINYET_FFT_NEAR_COSINE 10126
#define TINYET_FFT_FAR_COSINE (-26510)
#define TINYET_FFT_NEAR_SINE 31164
#define TINYET_FFT_FAR_SINE 19261

typedef struct {
  int32_t r, i;
} tinyet_number;

/* A complex number of two halfwords. Cores with DSP instructions hold it in one register. */
#if TINYET_WORD_TIMES_HALF
typedef int32_t tinyet_turn;

static inline tinyet_turn tinyet_turn_at(const int16_t *table, int32_t index) {
  tinyet_turn turn;
  memcpy(&turn, table + 2 * index, sizeof turn);
  return turn;
}

static inline int32_t tinyet_times_half(int32_t x, int32_t w) {
  int32_t out;
  __asm__("smulwb %0, %1, %2" : "=r"(out) : "r"(x), "r"(w));
  return out;
}

static inline tinyet_number tinyet_times(tinyet_number x, tinyet_turn w) {
  int32_t crossed, sum;
  __asm__("smulwt %0, %1, %2" : "=r"(crossed) : "r"(x.i), "r"(w));
  __asm__("smlawt %0, %1, %2, %3" : "=r"(sum) : "r"(x.r), "r"(w), "r"(tinyet_times_half(x.i, w)));
  const tinyet_number out = {tinyet_times_half(x.r, w) - crossed, sum};
  return out;
}
#else
typedef struct {
  int32_t r, i;
} tinyet_turn;

static inline tinyet_turn tinyet_turn_at(const TINYET_ROM int16_t *table, int32_t index) {
  const tinyet_turn turn = {table[2 * index], table[2 * index + 1]};
  return turn;
}

/* (x * w) >> 16 without a product of more than 32 bits; w is an int16. */
static inline int32_t tinyet_times_half(int32_t x, int32_t w) {
  return (x >> 16) * w + (((x & 0xffff) * w) >> 16);
}

static inline tinyet_number tinyet_times(tinyet_number x, tinyet_turn w) {
  tinyet_number out;
  out.r = tinyet_times_half(x.r, w.r) - tinyet_times_half(x.i, w.i);
  out.i = tinyet_times_half(x.i, w.r) + tinyet_times_half(x.r, w.i);
  return out;
}
#endif

static inline tinyet_number tinyet_plus(tinyet_number a, tinyet_number b) {
  const tinyet_number out = {a.r + b.r, a.i + b.i};
  return out;
}

static inline tinyet_number tinyet_minus(tinyet_number a, tinyet_number b) {
  const tinyet_number out = {a.r - b.r, a.i - b.i};
  return out;
}

static inline tinyet_number tinyet_halved(tinyet_number a) {
  const tinyet_number out = {a.r >> 1, a.i >> 1};
  return out;
}

static inline tinyet_number tinyet_negative(tinyet_number a) {
  const tinyet_number out = {-a.r, -a.i};
  return out;
}

/* a + i b */
static inline tinyet_number tinyet_plus_i(tinyet_number a, tinyet_number b) {
  const tinyet_number out = {a.r - b.i, a.i + b.r};
  return out;
}

/* a - i b */
static inline tinyet_number tinyet_minus_i(tinyet_number a, tinyet_number b) {
  const tinyet_number out = {a.r + b.i, a.i - b.r};
  return out;
}

static inline tinyet_number tinyet_scaled(tinyet_number a, int32_t w) {
  const tinyet_number out = {tinyet_times_half(2 * a.r, w), tinyet_times_half(2 * a.i, w)};
  return out;
}

/* Butterflies write to z, z + size, …; all but the first number come with the other sign. */

static inline void tinyet_two(tinyet_number *z, int32_t size, tinyet_number a, tinyet_number b) {
  z[0] = tinyet_minus(a, b);
  z[size] = tinyet_plus(a, b);
}

static inline void tinyet_three(tinyet_number *z, int32_t size, tinyet_number a, tinyet_number b, tinyet_number c) {
  const tinyet_number total = tinyet_plus(b, c), side = tinyet_scaled(tinyet_minus(b, c), TINYET_FFT_SIXTY);
  const tinyet_number middle = tinyet_plus(a, tinyet_halved(total));
  z[0] = tinyet_minus(a, total);
  z[size] = tinyet_plus_i(middle, side);
  z[2 * size] = tinyet_minus_i(middle, side);
}

static inline void tinyet_four(tinyet_number *z, int32_t size, tinyet_number a, tinyet_number b, tinyet_number c,
                               tinyet_number d) {
  const tinyet_number even = tinyet_minus(a, c), middle = tinyet_plus(a, c);
  const tinyet_number odd = tinyet_plus(b, d), side = tinyet_minus(b, d);
  z[0] = tinyet_minus(even, odd);
  z[size] = tinyet_plus_i(middle, side);
  z[2 * size] = tinyet_plus(even, odd);
  z[3 * size] = tinyet_minus_i(middle, side);
}

/* z holds all five. */
static inline void tinyet_five(tinyet_number *z, int32_t size, tinyet_number a, const tinyet_number *other) {
  const tinyet_number outer = tinyet_plus(other[0], other[3]), inner = tinyet_plus(other[1], other[2]);
  const tinyet_number apart = tinyet_minus(other[0], other[3]), close = tinyet_minus(other[1], other[2]);
  const tinyet_number near = tinyet_minus(a, tinyet_plus(tinyet_scaled(outer, TINYET_FFT_NEAR_COSINE),
                                                         tinyet_scaled(inner, TINYET_FFT_FAR_COSINE)));
  const tinyet_number far = tinyet_minus(
      a, tinyet_plus(tinyet_scaled(outer, TINYET_FFT_FAR_COSINE), tinyet_scaled(inner, TINYET_FFT_NEAR_COSINE)));
  const tinyet_number near_side =
      tinyet_plus(tinyet_scaled(apart, TINYET_FFT_NEAR_SINE), tinyet_scaled(close, TINYET_FFT_FAR_SINE));
  const tinyet_number far_side =
      tinyet_minus(tinyet_scaled(apart, TINYET_FFT_FAR_SINE), tinyet_scaled(close, TINYET_FFT_NEAR_SINE));
  z[0] = tinyet_minus(tinyet_minus(a, outer), inner);
  z[size] = tinyet_plus_i(near, near_side);
  z[2 * size] = tinyet_plus_i(far, far_side);
  z[3 * size] = tinyet_minus_i(far, far_side);
  z[4 * size] = tinyet_minus_i(near, near_side);
}

/* The first stage: all twiddles are 1. */
static inline void tinyet_first_stage(tinyet_number *z, const tinyet_number *end, int32_t radix) {
  for (; z != end; z += radix) {
    if (radix == 4) {
      const tinyet_number even = tinyet_plus(z[0], z[2]), middle = tinyet_minus(z[0], z[2]);
      const tinyet_number odd = tinyet_plus(z[1], z[3]), side = tinyet_minus(z[1], z[3]);
      z[0] = tinyet_plus(even, odd);
      z[1] = tinyet_minus_i(middle, side);
      z[2] = tinyet_minus(even, odd);
      z[3] = tinyet_plus_i(middle, side);
    } else if (radix == 2) {
      tinyet_two(z, 1, z[0], tinyet_negative(z[1]));
    } else if (radix == 3) {
      tinyet_three(z, 1, z[0], tinyet_negative(z[1]), tinyet_negative(z[2]));
    } else {
      const tinyet_number other[4] = {tinyet_negative(z[1]), tinyet_negative(z[2]), tinyet_negative(z[3]),
                                      tinyet_negative(z[4])};
      tinyet_five(z, 1, z[0], other);
    }
  }
}

/* log2(x), 15 bits behind the point. */
static inline int32_t tinyet_log2_q15(uint64_t x, const TINYET_ROM uint16_t *table) {
  const uint32_t high = (uint32_t)(x >> 32);
  int32_t zeros = 32;
  uint32_t mantissa = (uint32_t)x;
  if (high != 0u) {
    zeros = tinyet_leading_zeros(high);
    mantissa = (uint32_t)((x << (uint32_t)zeros) >> 32);
  } else {
    const int32_t more = tinyet_leading_zeros(mantissa);
    mantissa <<= (uint32_t)more;
    zeros += more;
  }
  const uint32_t line = (mantissa >> 26) & 31u, rest = (mantissa >> 10) & 0xffffu;
  const uint32_t low = table[line], rise = table[line + 1u] - low;
  return ((63 - zeros) << 15) + (int32_t)(low + ((rise * rest) >> 16));
}

#ifdef __cplusplus
}
#endif

#endif
