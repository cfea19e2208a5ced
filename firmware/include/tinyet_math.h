/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions in float32, with neither libm nor double. tinyet/numerics/float32.py is their reference: the same operations in the
 * same order, so that host and device agree bit for bit (compile with -ffp-contract=off). Polynomials are minimax fits.
 * Errors against float64 are at most 2 units in the last place unless said otherwise; the tests measure them. */
#ifndef TINYET_MATH_H
#define TINYET_MATH_H

#include <string.h>

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline uint32_t tinyet_float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float tinyet_float_from(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline float tinyet_infinity(void) { return tinyet_float_from(UINT32_C(0x7f800000)); }
static inline float tinyet_nan(void) { return tinyet_float_from(UINT32_C(0x7fc00000)); }
static inline float tinyet_absf(float x) { return tinyet_float_from(tinyet_float_bits(x) & UINT32_C(0x7fffffff)); }

/* x with the sign of y. */
static inline float tinyet_copysignf(float x, float y) {
  return tinyet_float_from((tinyet_float_bits(x) & UINT32_C(0x7fffffff)) |
                           (tinyet_float_bits(y) & UINT32_C(0x80000000)));
}

/* IEEE square root: one instruction where there is an FPU; elsewhere exact by integers, a bit at a time. */
static inline float tinyet_sqrtf(float x) {
#if defined(__ARM_FP) && (__ARM_FP & 4)
  float root;
  __asm__("vsqrt.f32 %0, %1" : "=t"(root) : "t"(x));
  return x < 0.0f ? tinyet_nan() : root;
#else
  uint32_t bits = tinyet_float_bits(x);
  if (!(x > 0.0f) || bits == UINT32_C(0x7f800000)) {
    return x < 0.0f ? tinyet_nan() : x; /* zeros, NaN and infinity are their own roots */
  }
  int32_t exponent = (int32_t)(bits >> 23);
  bits &= UINT32_C(0x7fffff);
  if (exponent == 0) {
    exponent = 1;
    while (bits < UINT32_C(0x800000)) {
      bits <<= 1;
      exponent--;
    }
  }
  bits |= UINT32_C(0x800000);
  exponent -= 127;
  if (exponent & 1) {
    bits <<= 1;
    exponent--;
  }
  /* 24 bits of the root and one to round by; a root never lies exactly between two floats. */
  uint32_t rest = bits << 1, root = 0, sum = 0;
  for (uint32_t bit = UINT32_C(1) << 24; bit != 0; bit >>= 1) {
    if (sum + bit <= rest) {
      sum += 2 * bit;
      rest -= sum - bit;
      root += bit;
    }
    rest <<= 1;
  }
  root = (root >> 1) + (root & 1u);
  return tinyet_float_from(root + ((uint32_t)(exponent / 2 + 126) << 23));
#endif
}

/* x * 2^n for |x| in [1/2, 2^32] and n in -252 ... 254: in two steps, of which at most the second one rounds. */
static inline float tinyet_scalef(float x, int32_t n) {
  const int32_t half = n >> 1;
  const float first = tinyet_float_from((uint32_t)(half + 127) << 23);
  const float second = tinyet_float_from((uint32_t)(n - half + 127) << 23);
  return x * first * second;
}

/* The integer nearest to x / ln 2, for |x| < 2^20: adding 1.5 * 2^23 leaves no room for a fraction. */
static inline float tinyet_exp_steps(float x) { return (x * 1.44269504f + 12582912.0f) - 12582912.0f; }

/* x - n ln 2, in two parts of ln 2: the product with the first is exact. */
static inline float tinyet_exp_rest(float x, float n) { return (x - n * 0.693359375f) - n * -2.12194440e-4f; }

static inline float tinyet_expf(float x) {
  if (!(x >= -104.0f)) {
    return x == x ? 0.0f : x;
  }
  if (x > 89.0f) {
    return tinyet_infinity();
  }
  const float n = tinyet_exp_steps(x), r = tinyet_exp_rest(x, n);
  float p = 0.0013951693f;
  p = p * r + 0.00836959854f;
  p = p * r + 0.0416661873f;
  p = p * r + 0.166665122f;
  p = p * r + 0.5f;
  return tinyet_scalef((p * (r * r) + r) + 1.0f, (int32_t)n);
}

/* exp(x) - 1. */
static inline float tinyet_expm1f(float x) {
  if (!(x >= -18.0f)) {
    return x == x ? -1.0f : x;
  }
  if (x > 20.0f) {
    return tinyet_expf(x) - 1.0f;
  }
  const float n = tinyet_exp_steps(x), r = tinyet_exp_rest(x, n);
  float p = 0.000199156217f;
  p = p * r + 0.00139420468f;
  p = p * r + 0.00833327044f;
  p = p * r + 0.0416663438f;
  p = p * r + 0.166666672f;
  p = p * r + 0.5f;
  p = p * (r * r) + r;
  const float power = tinyet_float_from((uint32_t)((int32_t)n + 127) << 23);
  return power * p + (power - 1.0f);
}

/* x = m * 2^e with m in [sqrt(1/2), sqrt(2)), for finite x > 0; gives m and stores e. */
static inline float tinyet_log_parts(float x, int32_t *e) {
  int32_t below = 0;
  if (x < 1.17549435e-38f) {
    x *= 8388608.0f;
    below = -23;
  }
  const uint32_t bits = tinyet_float_bits(x);
  const int32_t steps = ((int32_t)bits - INT32_C(0x3f3504f3)) >> 23;
  *e = steps + below;
  return tinyet_float_from(bits - ((uint32_t)steps << 23));
}

/* log(1 + f) + e ln 2 + rest, for f in [sqrt(1/2) - 1, sqrt(2) - 1] and a small rest. */
static inline float tinyet_log_core(float f, float e, float rest) {
  float p = -0.0785989389f;
  p = p * f + 0.128858149f;
  p = p * f + -0.131304517f;
  p = p * f + 0.141807064f;
  p = p * f + -0.166243494f;
  p = p * f + 0.200023025f;
  p = p * f + -0.250008166f;
  p = p * f + 0.333333164f;
  const float square = f * f;
  const float low = (p * (square * f) + (e * -2.12194440e-4f + rest)) - 0.5f * square;
  return (f + low) + e * 0.693359375f;
}

static inline float tinyet_logf(float x) {
  if (!(x > 0.0f)) {
    return x == 0.0f ? -tinyet_infinity() : tinyet_nan();
  }
  if (x > 3.40282347e+38f) {
    return x;
  }
  int32_t e;
  const float m = tinyet_log_parts(x, &e);
  return tinyet_log_core(m - 1.0f, (float)e, 0.0f);
}

/* log(1 + x). */
static inline float tinyet_log1pf(float x) {
  if (!(x > -1.0f)) {
    return x == -1.0f ? -tinyet_infinity() : tinyet_nan();
  }
  if (x > 3.40282347e+38f) {
    return x;
  }
  if (x > -0.292893219f && x < 0.414213562f) {
    return tinyet_log_core(x, 0.0f, 0.0f);
  }
  /* What 1 + x loses by rounding comes back as a correction. */
  const float u = 1.0f + x;
  const float lost = x > 1.0f ? 1.0f - (u - x) : x - (u - 1.0f);
  int32_t e;
  const float m = tinyet_log_parts(u, &e);
  return tinyet_log_core(m - 1.0f, (float)e, lost / u);
}

/* |x| = q pi/2 + r with r in about [-pi/4, pi/4], for finite x; gives r and stores q mod 4. Beyond pi/4 the product with 2/pi
 * is formed in integers, from the bits of 2/pi that matter, so that no argument is too large. */
static inline float tinyet_quadrant(float x, uint32_t *quadrant) {
  static const TINYET_ROM uint32_t two_over_pi[8] = {UINT32_C(0),          UINT32_C(0xa2f9836e), UINT32_C(0x4e441529),
                                                     UINT32_C(0xfc2757d1), UINT32_C(0xf534ddc0), UINT32_C(0xdb629599),
                                                     UINT32_C(0x3c439041), UINT32_C(0xfe5163ab)};
  const uint32_t bits = tinyet_float_bits(x) & UINT32_C(0x7fffffff);
  *quadrant = 0;
  if (bits <= UINT32_C(0x3f490fda)) { /* up to pi/4 */
    return tinyet_float_from(bits);
  }
  const uint64_t mantissa = (bits & UINT32_C(0x7fffff)) | UINT32_C(0x800000);
  const uint32_t first = (bits >> 23) - 120u; /* bit of the table that stands for 2 after the multiplication */
  const uint32_t k = first >> 5, left = 32u - (first & 31u);
  const uint32_t high = (uint32_t)((((uint64_t)two_over_pi[k] << 32) | two_over_pi[k + 1]) >> left);
  const uint32_t middle = (uint32_t)((((uint64_t)two_over_pi[k + 1] << 32) | two_over_pi[k + 2]) >> left);
  const uint32_t low = (uint32_t)((((uint64_t)two_over_pi[k + 2] << 32) | two_over_pi[k + 3]) >> left);
  /* |x| 2/pi mod 4, in units of 2^-62. */
  const uint64_t turns = ((mantissa * high) << 32) + mantissa * middle + ((mantissa * low) >> 32);
  const uint64_t nearest = (turns + (UINT64_C(1) << 61)) >> 62;
  *quadrant = (uint32_t)(nearest & 3u);
  uint64_t rest = turns - (nearest << 62);
  const uint32_t negative = (uint32_t)(rest >> 63);
  rest = negative ? 0 - rest : rest;
  if (rest == 0) {
    return 0.0f;
  }
  const uint32_t zeros = (uint32_t)__builtin_clzll(rest);
  /* Times pi/2 in Q1.31, then rounded to a float once. */
  const uint64_t product = ((rest << zeros) >> 32) * UINT64_C(3373259426);
  const float r = (float)(uint32_t)(product >> 32) * tinyet_float_from((98u - zeros) << 23);
  return negative ? -r : r;
}

/* sin(r + q pi/2) for |r| <= pi/4. */
static inline float tinyet_sin_quadrant(float r, uint32_t q) {
  const float z = r * r;
  float value;
  if (q & 1u) {
    value = ((2.44380917e-05f * z + -0.00138873642f) * z + 0.0416666456f) * (z * z) + (1.0f - 0.5f * z);
  } else {
    value = ((-0.000195169778f * z + 0.00833217613f) * z + -0.166666552f) * (z * r) + r;
  }
  return q & 2u ? -value : value;
}

static inline float tinyet_sinf(float x) {
  if (!(tinyet_absf(x) <= 3.40282347e+38f)) {
    return tinyet_nan();
  }
  uint32_t q;
  const float r = tinyet_quadrant(x, &q);
  const float value = tinyet_sin_quadrant(r, q);
  return x < 0.0f ? -value : value;
}

static inline float tinyet_cosf(float x) {
  if (!(tinyet_absf(x) <= 3.40282347e+38f)) {
    return tinyet_nan();
  }
  uint32_t q;
  const float r = tinyet_quadrant(x, &q);
  return tinyet_sin_quadrant(r, q + 1u);
}

static inline float tinyet_tanhf(float x) {
  const float a = tinyet_absf(x);
  if (a < 0.625f) {
    const float z = x * x;
    float p = -0.00570948049f;
    p = p * z + 0.0206441209f;
    p = p * z + -0.053741619f;
    p = p * z + 0.133314699f;
    p = p * z + -0.333332837f;
    return p * (z * x) + x;
  }
  if (x != x) {
    return x;
  }
  return tinyet_copysignf(1.0f - 2.0f / (tinyet_expf(a + a) + 1.0f), x);
}

/* 1 / (1 + exp(-x)). */
static inline float tinyet_sigmoidf(float x) {
  const float e = tinyet_expf(-tinyet_absf(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

static inline float tinyet_erff(float x) {
  const float a = tinyet_absf(x);
  if (a < 0.93f) {
    const float z = x * x;
    float p = -0.00059768965f;
    p = p * z + 0.00499098049f;
    p = p * z + -0.0267655663f;
    p = p * z + 0.112818025f;
    p = p * z + -0.376124948f;
    p = p * z + 0.128379151f;
    return p * x + x;
  }
  if (x != x) {
    return x;
  }
  if (a > 3.95f) {
    return tinyet_copysignf(1.0f, x);
  }
  /* -log(1 - erf(a)) is smooth. */
  float p = 2.12178747e-05f;
  p = p * a + -0.000435884198f;
  p = p * a + 0.00417795964f;
  p = p * a + -0.0251376145f;
  p = p * a + 0.108308263f;
  p = p * a + 0.633321285f;
  p = p * a + 1.12952769f;
  p = p * a + -0.000177333975f;
  return tinyet_copysignf(1.0f - tinyet_expf(-p), x);
}

/* 0 where |x|^y is too small, infinity where it is too large, else |x|^y, for finite x != 0 and finite y != 0. In integers:
 * log2 |x| in Q54, times y in Q32, then a power of two. */
static inline float tinyet_pow_positive(float x, float y) {
  static const TINYET_ROM int32_t log_terms[13] = {1549082005, -774541003, 516360685,  -387270436, 309814461,
                                                   -258183078, 221381424,  -193634136, 170471653,  -153296465,
                                                   155113439,  -155072471, 85411679};
  static const TINYET_ROM uint32_t exp_terms[8] = {1073741824u, 744261126u, 257941086u, 59598365u,
                                                   10322424u,   1442062u,   153505u,    23258u};
  int32_t e;
  const float m = tinyet_log_parts(tinyet_absf(x), &e);
  const int64_t f = (int32_t)((m - 1.0f) * 16777216.0f); /* Q24, exact */
  int64_t p = log_terms[12];
  for (int32_t i = 11; i >= 0; i--) {
    p = log_terms[i] + ((p * f + (INT32_C(1) << 23)) >> 24);
  }
  const int64_t log = f * p + e * (INT64_C(1) << 54);
  if (log == 0) {
    return 1.0f;
  }
  const uint64_t size = log < 0 ? 0 - (uint64_t)log : (uint64_t)log;
  const int32_t zeros = __builtin_clzll(size);
  int32_t y_e;
  const float y_m = tinyet_log_parts(tinyet_absf(y), &y_e);
  const uint64_t y_fixed = (uint32_t)(int32_t)(y_m * 16777216.0f); /* Q24, exact */
  const uint64_t product = ((size << zeros) >> 32) * y_fixed;
  /* product * 2^(32 - zeros - 54 - 24 + y_e), as Q32. */
  const int32_t right = 14 + zeros - y_e;
  const int negative = (log < 0) != (y < 0.0f);
  uint64_t exponent = 0;
  if (right < 64) {
    exponent = right > 0 ? product >> right : UINT64_MAX;
  }
  if (exponent >= UINT64_C(152) << 32) {
    return negative ? 0.0f : tinyet_infinity();
  }
  const int64_t target = negative ? -(int64_t)exponent : (int64_t)exponent;
  const uint64_t fraction = (uint32_t)target;
  uint64_t power = exp_terms[7]; /* Q30 */
  for (int32_t i = 6; i >= 0; i--) {
    power = exp_terms[i] + ((power * fraction) >> 32);
  }
  return tinyet_scalef((float)(uint32_t)power, (int32_t)(target >> 32) - 30);
}

/* x^y with the special cases of C's pow. */
static inline float tinyet_powf(float x, float y) {
  if (y == 0.0f || x == 1.0f) {
    return 1.0f;
  }
  if (x != x || y != y) {
    return tinyet_nan();
  }
  const float a = tinyet_absf(x), infinity = tinyet_infinity();
  if (tinyet_absf(y) == infinity) {
    return a == 1.0f ? 1.0f : ((a > 1.0f) == (y > 0.0f) ? infinity : 0.0f);
  }
  /* Is y an integer, and odd? Beyond 2^24 every float is even. */
  const int32_t whole = tinyet_absf(y) < 16777216.0f ? (int32_t)y : 0;
  const int integer = tinyet_absf(y) >= 16777216.0f || (float)whole == y;
  const int odd = integer && (whole & 1) != 0;
  float result;
  if (a == 0.0f || a == infinity) {
    result = (a == 0.0f) == (y > 0.0f) ? 0.0f : infinity;
  } else if (x < 0.0f && !integer) {
    return tinyet_nan();
  } else {
    result = tinyet_pow_positive(x, y);
  }
  return odd ? tinyet_copysignf(result, x) : result;
}

#ifdef __cplusplus
}
#endif

#endif
