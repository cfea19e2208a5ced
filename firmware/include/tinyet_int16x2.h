/* SPDX-License-Identifier: Apache-2.0 */
/* int16x2: two 16-bit numbers in a word, for the multiply loops of int8 kernels, and a cheaper form of the rounding rule.
 *
 * Cores with the DSP extension do each of these in one instruction; elsewhere the same function is plain C. */
#ifndef TINYET_INT16X2_H
#define TINYET_INT16X2_H

#include <string.h>

#include "tinyet_common.h"

#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP
#include <arm_acle.h>
#define TINYET_HAS_SIMD32 1
#else
#define TINYET_HAS_SIMD32 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A word of scratch that holds two int16_t: it may be written as halves and read as a whole. */
typedef int32_t __attribute__((may_alias)) tinyet_int16x2;

/* Four bytes from any address, the first in the lowest bits. */
static inline uint32_t tinyet_load4(const void *from) {
  uint32_t word;
  memcpy(&word, from, 4);
  return word;
}

#if TINYET_HAS_SIMD32

/* Bytes 0 and 2, or 1 and 3, of the word as a pair. */
static inline int32_t tinyet_even_bytes(uint32_t word) { return __sxtb16((int8x4_t)word); }
static inline int32_t tinyet_odd_bytes(uint32_t word) {
  int32_t pair; /* GCC does not fold the rotation into the instruction by itself */
  __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(word));
  return pair;
}

/* (a.low, b.low) and (a.high, b.high) as pairs. */
static inline int32_t tinyet_both_low(int32_t a, int32_t b) {
  return (int32_t)(((uint32_t)a & 0xffffu) | ((uint32_t)b << 16));
}
static inline int32_t tinyet_both_high(int32_t a, int32_t b) {
  return (int32_t)(((uint32_t)a >> 16) | ((uint32_t)b & 0xffff0000u));
}

/* sum + a.low * b.low + a.high * b.high */
static inline int32_t tinyet_mac_int16x2(int32_t a, int32_t b, int32_t sum) { return __smlad(a, b, sum); }

/* sum + a.low * b.low, sum + a.high * b.high */
static inline int32_t tinyet_mac_low(int32_t a, int32_t b, int32_t sum) { return __smlabb(a, b, sum); }
static inline int32_t tinyet_mac_high(int32_t a, int32_t b, int32_t sum) { return __smlatt(a, b, sum); }

#endif

/* a * 2 * multiplier / 2^32, ties upward; multiplier >= 0, |a| < 2^30. */
static inline int32_t tinyet_high_mul_twice(int32_t a, int32_t multiplier) {
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
  /* No long multiplication there: four products of halves, instead of a call of the compiler's 64 by 64 bits. */
  const int32_t twice = a * 2;
  const int32_t high = twice >> 16;
  const uint32_t low = (uint32_t)twice & 0xffffu;
  const uint32_t top = (uint32_t)multiplier >> 16, bottom = (uint32_t)multiplier & 0xffffu;
  const uint32_t cross = low * top;
  const int32_t signed_cross = high * (int32_t)bottom;
  const uint32_t middle = ((low * bottom) >> 16) + (cross & 0xffffu) + ((uint32_t)signed_cross & 0xffffu) + 0x8000u;
  return high * (int32_t)top + (int32_t)(cross >> 16) + (signed_cross >> 16) + (int32_t)(middle >> 16);
#elif defined(__AVR__)
  return tinyet_high_mul(a, multiplier);
#elif TINYET_HAS_SIMD32
  int32_t high; /* GCC makes three instructions of the expression below */
  __asm__("smmulr %0, %1, %2" : "=r"(high) : "r"(a * 2), "r"(multiplier));
  return high;
#else
  return (int32_t)(((int64_t)(a * 2) * multiplier + (INT64_C(1) << 31)) >> 32);
#endif
}

/* The general rule, kept out of the loops. */
static __attribute__((noinline, unused)) int32_t tinyet_requantize_any(int32_t sum, int32_t multiplier, int32_t shift) {
  return tinyet_requantize(sum, multiplier, shift);
}

/* tinyet_requantize plus the zero point, of a sum whose form Python chose (tinyet/ops/shared/packing.py). form >= 0: the sum is
 * below 2^30 and the shift is -1 - form; else the shift is form + 31. With h the rounded product, rounding h / 2^(form + 1)
 * with ties away from zero is floor((floor((h - (h < 0)) / 2^form) + 1) / 2), and the zero point can join the 1. */
static inline int32_t tinyet_requantize_form(int32_t sum, int32_t multiplier, int32_t form, int32_t zero_point) {
  if (__builtin_expect(form >= 0, 1)) {
    const int32_t high = tinyet_high_mul_twice(sum, multiplier);
    return (((high - (int32_t)((uint32_t)high >> 31)) >> form) + (2 * zero_point + 1)) >> 1;
  }
  return tinyet_requantize_any(sum, multiplier, form + 31) + zero_point;
}

#ifdef __cplusplus
}
#endif

#endif
