/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels for cores with Helium (MVE: Cortex-M52, M55, M85) have in common: copies, and the requantization of
 * sums. Their loops are inline assembly, one text for GCC and clang; everywhere else (another core, a sanitizer, a build with
 * -O0) plain C computes the same bits. Vectors of words lie at addresses that are multiples of four, which these instructions
 * ask for. Narrowing shifts are rounding ones throughout: GNU as 2.40 assembles the others as these. */
#ifndef TINYET_MVE_H
#define TINYET_MVE_H

/* These loops take nearly all registers of a core. With -fno-omit-frame-pointer GCC would have one too few for some of them: files
 * that include this have no frame pointer. */
#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("omit-frame-pointer")
#endif

#include "tinyet_dsp.h"

#if TINYET_DSP_ASM && defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
#define TINYET_MVE_ASM 1
#else
#define TINYET_MVE_ASM 0
#endif

#if TINYET_MVE_ASM && defined(__ARM_FP) && (__ARM_FP & 4)
#define TINYET_MVE_FPU_ASM 1
#else
#define TINYET_MVE_FPU_ASM 0
#endif

/* A parameter of a function whose body is assembly alone. */
#define TINYET_MVE_UNUSED __attribute__((unused))

#ifdef __cplusplus
extern "C" {
#endif

/* Sums to outputs.
 * one_sided: nothing below the zero point is an output (ReLU), so that no correction of negative sums can be seen.
 * clamped: low and high are not the ends of int8. */
typedef struct {
  int32_t one_sided, clamped, zero_point, low, high;
} tinyet_rounding_mve;

/* (value * multiplier / 2^31, rounded) * 2^shift, rounded away from zero; shift: -1 ... -31 */
TINYET_DSP_INLINE int8_t tinyet_round_mve(int32_t sum, int32_t multiplier, int32_t shift, const tinyet_rounding_mve *r) {
  int32_t value = (int32_t)(((int64_t)sum * multiplier + (INT64_C(1) << 30)) >> 31);
  if (!r->one_sided && sum < 0) {
    value--;
  }
  value = (int32_t)(((int64_t)value + (INT64_C(1) << (-shift - 1))) >> -shift);
  value = tinyet_clamp(tinyet_clamp(value, -32768, 32767) + r->zero_point, -128, 127);
  return (int8_t)(r->clamped ? tinyet_clamp(value, r->low, r->high) : value);
}

/* The same to int16, of a multiplier that all shifts but the exponent are in: value * multiplier / 2^(31 + exponent), rounded
 * once, ties upward. */
TINYET_DSP_INLINE int16_t tinyet_round_s16_mve(int32_t sum, int32_t multiplier, int32_t exponent, int32_t low, int32_t high) {
  const int64_t half = INT64_C(1) << (30 + exponent);
  return (int16_t)tinyet_clamp((int32_t)(((int64_t)sum * multiplier + half) >> (31 + exponent)), low, high);
}

/* count > 0 bytes, ascending: `to` may lie before `from`. */
TINYET_DSP_INLINE void tinyet_copy_mve(int8_t *to, const int8_t *from, int32_t count) {
#if TINYET_MVE_ASM
  __asm__ volatile(
      "dlstp.8 lr, %[count]\n"
      "1:\n"
      "vldrb.8 q0, [%[from]], #16\n"
      "vstrb.8 q0, [%[to]], #16\n"
      "letp lr, 1b\n"
      : [to] "+l"(to), [from] "+l"(from)
      : [count] "r"(count)
      : "lr", "d0", "d1", "memory");
#else
  memmove(to, from, (size_t)count);
#endif
}

/* count >= 0 bytes. */
TINYET_DSP_INLINE void tinyet_fill_mve(int8_t *to, int32_t value, int32_t count) {
#if TINYET_MVE_ASM
  if (count > 0) {
    __asm__ volatile(
        "vdup.8 q0, %[value]\n"
        "dlstp.8 lr, %[count]\n"
        "1:\n"
        "vstrb.8 q0, [%[to]], #16\n"
        "letp lr, 1b\n"
        : [to] "+l"(to)
        : [value] "r"(value), [count] "r"(count)
        : "lr", "d0", "d1", "memory");
  }
#else
  memset(to, value, (size_t)count);
#endif
}

/* `largest`, or the largest of `count` > 0 values from `from` on, which moves, where that is larger. */
#if TINYET_MVE_ASM
#define TINYET_MVE_LARGEST(largest, from, count, BITS, LETTER) \
  __asm__ volatile("dlstp." BITS " lr, %2\n1:\nvldr" LETTER "." BITS " q0, [%0], #16\nvmaxv.s" BITS " %1, q0\nletp lr, 1b\n" \
                   : "+l"(from), "+r"(largest) \
                   : "r"(count) \
                   : "lr", "d0", "d1", "memory")
#else
#define TINYET_MVE_LARGEST(largest, from, count, BITS, LETTER) \
  for (int32_t left = (count); left > 0; left--, (from)++) { \
    (largest) = *(from) > (largest) ? *(from) : (largest); \
  }
#endif

/* The same as a copy, whole vectors of sixteen: up to 15 bytes more. */
TINYET_DSP_INLINE void tinyet_copy_sixteens_mve(int8_t *to, const int8_t *from, int32_t count) {
#if TINYET_MVE_ASM
  for (; count > 0; count -= 16) {
    __asm__ volatile(
        "vldrb.8 q0, [%[from]], #16\n"
        "vstrb.8 q0, [%[to]], #16\n"
        : [to] "+l"(to), [from] "+l"(from)
        :
        : "d0", "d1", "memory");
  }
#else
  memmove(to, from, (size_t)count); /* nothing that is read later is in the others */
#endif
}

#ifdef __cplusplus
}
#endif

#endif
