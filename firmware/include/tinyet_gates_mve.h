/* SPDX-License-Identifier: Apache-2.0 */
/* Gates of recurrent layers for cores with Helium (MVE): the functions of tinyet_gates.h of eight values at a time. VQRDMULH is
 * tinyet_gate_mul. Included by tinyet_gates.h. */
#ifndef TINYET_GATES_MVE_H
#define TINYET_GATES_MVE_H

#include <arm_mve.h>

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Times a constant where bit `bit` of n is 0. */
static inline int16x8_t tinyet_times_mve(int16x8_t x, int16x8_t n, int32_t bit, int16_t factor) {
  const mve_pred16_t clear = vcmpeqq_n_s16(vandq_s16(n, vdupq_n_s16((int16_t)(1 << bit))), 0);
  return vqrdmulhq_m_s16(x, x, vdupq_n_s16(factor), clear);
}

/* exp(n / 2^(15 - bits)) for n in -2^15 ... -1, bits in 1 ... 7: Q0.15. */
static inline int16x8_t tinyet_gate_exp_mve(int16x8_t n, int32_t bits) {
  const int32_t quarter = 13 - bits; /* the bit of n that is worth 1/4 */
  const int16x8_t rest = vandq_s16(vshlq_r_s16(n, bits), vdupq_n_s16(8191));
  const int16x8_t x = vsubq_n_s16(rest, 4096), x2 = vqrdmulhq_s16(x, x);
  const int16x8_t sum = vaddq_s16(vrshrq_n_s16(vqrdmulhq_s16(x2, x2), 2), vqrdmulhq_s16(x2, x));
  const int16x8_t series = vaddq_s16(vqrdmulhq_n_s16(sum, 10923), x2);
  int16x8_t result = vqrdmulhq_n_s16(vaddq_s16(x, vrshrq_n_s16(series, 1)), 28918);
  result = vaddq_n_s16(result, 28918);
  result = tinyet_times_mve(result, n, quarter, 25520);
  result = tinyet_times_mve(result, n, quarter + 1, 19875);
  result = tinyet_times_mve(result, n, quarter + 2, 12055);
  if (bits > 1) {
    result = tinyet_times_mve(result, n, quarter + 3, 4435);
  }
  if (bits > 2) {
    result = tinyet_times_mve(result, n, quarter + 4, 600);
  }
  if (bits > 3) {
    result = tinyet_times_mve(result, n, quarter + 5, 11);
  }
  if (bits > 4) { /* exp(-16) is nothing */
    const mve_pred16_t small = vcmpltq_n_s16(n, (int16_t)-(1 << (quarter + 6)));
    result = vpselq_s16(vdupq_n_s16(0), result, small);
  }
  return result;
}

/* 2 / (1 + x) for x in [0, 1), Q0.15 to Q2.13: three Newton steps. */
static inline int16x8_t tinyet_gate_reciprocal_mve(int16x8_t x) {
  const int16x8_t half_denominator = vaddq_n_s16(vshrq_n_s16(x, 1), 16384);
  int16x8_t y = vaddq_n_s16(vqrdmulhq_n_s16(half_denominator, -15420), 23130);
  const int16x8_t one = vdupq_n_s16(8192);
  y = vaddq_s16(y, vshlq_n_s16(vqrdmulhq_s16(y, vsubq_s16(one, vqrdmulhq_s16(half_denominator, y))), 2));
  y = vaddq_s16(y, vshlq_n_s16(vqrdmulhq_s16(y, vsubq_s16(one, vqrdmulhq_s16(half_denominator, y))), 2));
  return vaddq_s16(y, vshlq_n_s16(vqrdmulhq_s16(y, vsubq_s16(one, vqrdmulhq_s16(half_denominator, y))), 2));
}

/* Of each value. Q3.12 to Q0.15. */
static __attribute__((noinline, unused)) void tinyet_gate_sigmoid(int16_t *values, int32_t count) {
  for (; count > 0; count -= 8) {
    const mve_pred16_t there = vctp16q((uint32_t)count);
    const int16x8_t x = vldrhq_z_s16(values, there);
    int16x8_t y = tinyet_gate_reciprocal_mve(tinyet_gate_exp_mve(vnegq_s16(vabsq_s16(x)), 3));
    y = vqaddq_s16(y, y);
    y = vsubq_m_s16(y, vdupq_n_s16(INT16_MAX), y, vcmpltq_n_s16(x, 0));
    y = vdupq_m_n_s16(y, 16384, vcmpeqq_n_s16(x, 0));
    vstrhq_p_s16(values, y, there);
    values += 8;
  }
}

/* Of each value, of so many integer bits, 0 ... 6, to Q0.15. */
static __attribute__((noinline, unused)) void tinyet_gate_tanh(int16_t *values, int32_t count, int32_t integer_bits) {
  for (; count > 0; count -= 8) {
    const mve_pred16_t there = vctp16q((uint32_t)count);
    const int16x8_t x = vldrhq_z_s16(values, there);
    int16x8_t y = tinyet_gate_reciprocal_mve(tinyet_gate_exp_mve(vnegq_s16(vabsq_s16(x)), integer_bits + 1));
    y = vqshlq_n_s16(vsubq_n_s16(y, 8192), 2);
    y = vnegq_m_s16(y, y, vcmpltq_n_s16(x, 0));
    y = vdupq_m_n_s16(y, 0, vcmpeqq_n_s16(x, 0));
    vstrhq_p_s16(values, y, there);
    values += 8;
  }
}

/* a * b / 2^bits of the even or the odd lanes: ties away from zero. */
static inline int32x4_t tinyet_rounded_mve(int32x4_t product, int32_t bits) {
  return vrshlq_n_s32(vaddq_s32(product, vshrq_n_s32(product, 31)), -bits);
}

/* tinyet_shortened. */
static inline int32x4_t tinyet_shortened_mve(int32x4_t product, int32_t bits) {
  return vrshlq_n_s32(vaddq_s32(product, vorrq_s32(vshrq_n_s32(product, 31), vdupq_n_s32(1))), -bits);
}

/* tinyet_requantize_form of forms that are not negative. */
static inline int32x4_t tinyet_requantize_mve(int32x4_t sum, int32_t multiplier, int32_t form, int32_t zero_point) {
  return vaddq_n_s32(tinyet_rounded_mve(vqrdmulhq_n_s32(sum, multiplier), form + 1), zero_point);
}

/* Even and odd lanes, saturated. */
static inline int16x8_t tinyet_joined_mve(int32x4_t even, int32x4_t odd) {
  return vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), even), odd);
}

/* To int8, saturated: as many as are there. */
static inline void tinyet_store_bytes_mve(int8_t *to, int32x4_t even, int32x4_t odd, mve_pred16_t there) {
  const int16x8_t both = tinyet_joined_mve(even, odd);
  vstrbq_p_s16(to, vmaxq_s16(vminq_s16(both, vdupq_n_s16(127)), vdupq_n_s16(-128)), there);
}

#ifdef __cplusplus
}
#endif

#endif
