/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary_s32.h"

/* Without signs nothing overflows; the conversion back is two's complement with every compiler that we know. */
static inline int32_t sum(int32_t x, int32_t y) { return (int32_t)((uint32_t)x + (uint32_t)y); }
static inline int32_t difference(int32_t x, int32_t y) { return (int32_t)((uint32_t)x - (uint32_t)y); }
static inline int32_t product(int32_t x, int32_t y) { return (int32_t)((uint32_t)x * (uint32_t)y); }

static inline int32_t square(int32_t x) { return product(x, x); }

/* The least int32 by -1 is itself. */
static inline int32_t truncated(int32_t x, int32_t y) {
  return y == 0 ? 0 : y == -1 ? difference(0, x) : x / y;
}

static inline int32_t floor_mod(int32_t x, int32_t y) {
  if (y == 0 || y == -1) {
    return 0;
  }
  const int32_t rest = x % y;
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

static inline int32_t floor_div(int32_t x, int32_t y) {
  const int32_t quotient = truncated(x, y);
  return y != 0 && y != -1 && x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient;
}

static inline int32_t shift_left(int32_t x, int32_t y) {
  return y < 0 || y > 31 ? 0 : (int32_t)((uint32_t)x << y);
}

/* Without a sign: what C makes of the sign bit is not said by every standard. */
static inline int32_t shift_right(int32_t x, int32_t y) {
  const int32_t bits = y < 0 || y > 31 ? 31 : y;
  return x < 0 ? (int32_t)~(~(uint32_t)x >> bits) : (int32_t)((uint32_t)x >> bits);
}

#define DEFINE(NAME, RESULT)                                                                                   \
  void tinyet_##NAME##_s32(const int32_t *a, const int32_t *b, int32_t *output,                                \
                           const tinyet_binary_s32_params *params) {                                             \
    const ptrdiff_t a_step = (ptrdiff_t)params->a_step, b_step = (ptrdiff_t)params->b_step;                    \
    const int32_t *const end = output + params->count;                                                         \
    while (output != end) {                                                                                    \
      const int32_t x = *a, y = *b;                                                                            \
      *output++ = RESULT;                                                                                      \
      a += a_step;                                                                                             \
      b += b_step;                                                                                             \
    }                                                                                                          \
  }

DEFINE(add, sum(x, y))
DEFINE(sub, difference(x, y))
DEFINE(mul, product(x, y))
DEFINE(div, truncated(x, y))
DEFINE(floor_div, floor_div(x, y))
DEFINE(floor_mod, floor_mod(x, y))
DEFINE(maximum, x > y ? x : y)
DEFINE(minimum, x < y ? x : y)
DEFINE(squared_difference, square(difference(x, y)))
DEFINE(bit_and, (int32_t)((uint32_t)x & (uint32_t)y))
DEFINE(bit_or, (int32_t)((uint32_t)x | (uint32_t)y))
DEFINE(bit_xor, (int32_t)((uint32_t)x ^ (uint32_t)y))
DEFINE(shift_left, shift_left(x, y))
DEFINE(shift_right, shift_right(x, y))
