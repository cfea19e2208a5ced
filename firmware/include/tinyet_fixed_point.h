/* SPDX-License-Identifier: Apache-2.0 */
/* 32-bit fixed point as gemmlowp defines it, for the int8 softmax functions. Qm.n is an int32_t that stands for itself / 2^n.
 * The reference in Python is tinyet/ops/shared/fixed_point.py. */
#ifndef TINYET_FIXED_POINT_H
#define TINYET_FIXED_POINT_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An exponential, Q0.31, as it is summed: Q12.19. Unsigned, because rounding the largest one passes INT32_MAX. */
static inline int32_t tinyet_as_addend(int32_t exponential) {
#ifdef __AVR__ /* a shift by eight bits is moves, and what is left has three registers */
  __extension__ typedef __uint24 three_bytes;
  return (int32_t)(three_bytes)((three_bytes)(((uint32_t)exponential + (1u << 11)) >> 8) >> 4);
#else
  return (int32_t)(((uint32_t)exponential + (1u << 11)) >> 12);
#endif
}

/* tinyet_high_mul of two numbers that are not negative. */
static inline int32_t tinyet_high_mul_positive(int32_t a, int32_t b) {
#ifdef __AVR__ /* whose compiler has no product of 64 bits but by eight bytes times eight */
  return tinyet_high_mul(a, b);
#else
  const uint64_t product = (uint64_t)((uint32_t)a * 2u) * (uint32_t)b;
  return (int32_t)((uint32_t)(product >> 32) + ((uint32_t)product >> 31));
#endif
}

#ifdef __AVR__
/* The two functions below, whose counters have 16 bits there, as addresses have. */
static __attribute__((noinline, unused)) int32_t tinyet_largest_s8(const int8_t *column, int32_t span, int32_t stride) {
  const int8_t *const end = column + TINYET_EXTENT(span);
  const tinyet_extent step = TINYET_EXTENT(stride);
  int8_t largest = INT8_MIN, value;
  __asm__ volatile(
      "1:\n"
      "ld %[value], X\n"
      "add r26, %A[step]\n" "adc r27, %B[step]\n"
      "cp %[largest], %[value]\n"
      "brge 2f\n"
      "mov %[largest], %[value]\n"
      "2:\n"
      "cp r26, %A[end]\n" "cpc r27, %B[end]\n"
      "brne 1b\n"
      : [largest] "+&r"(largest), [value] "=&r"(value), "+x"(column)
      : [step] "r"(step), [end] "r"(end)
      : "memory");
  return largest;
}

/* Addends begin at the exponentials' second byte, so they are summed with four bits of fraction more than they have: zeros, which
 * are shifted out at the end. */
static __attribute__((noinline, unused)) int32_t tinyet_sum_of_exponentials(const int8_t *column, int32_t span, int32_t stride,
                                                                            int32_t largest,
                                                                            const TINYET_ROM int32_t *exponentials,
                                                                            int32_t count) {
  const int8_t *const end = column + TINYET_EXTENT(span);
  const TINYET_ROM uint8_t *const upper = (const TINYET_ROM uint8_t *)exponentials + 1;
  const tinyet_extent step = TINYET_EXTENT(stride);
  const uint8_t last = (uint8_t)(count - 1), above = (uint8_t)largest;
  uint32_t sum = 0;
  uint8_t carried = 0, first, second, third;
  __asm__ volatile(
      "1:\n"
      "ld %[first], X\n"
      "add r26, %A[step]\n" "adc r27, %B[step]\n"
      "mov r30, %[above]\n"
      "sub r30, %[first]\n"
      "cp %[last], r30\n"
      "brcs 2f\n"
      "clr r31\n"
      "lsl r30\n" "rol r31\n"
      "lsl r30\n" "rol r31\n"
      "add r30, %A[upper]\n" "adc r31, %B[upper]\n"
      TINYET_LPM "%[first], Z+\n"
      TINYET_LPM "%[second], Z+\n"
      TINYET_LPM "%[third], Z\n"
      "subi %[first], 0xf8\n" "sbci %[second], 0xff\n" "sbci %[third], 0xff\n" /* half of what is dropped */
      "andi %[first], 0xf0\n"
      "add %A[sum], %[first]\n" "adc %B[sum], %[second]\n" "adc %C[sum], %[third]\n"
      "adc %D[sum], __zero_reg__\n" "adc %[carried], __zero_reg__\n"
      "2:\n"
      "cp r26, %A[end]\n" "cpc r27, %B[end]\n"
      "brne 1b\n"
      "ldi %[first], 4\n"
      "3:\n"
      "lsr %[carried]\n" "ror %D[sum]\n" "ror %C[sum]\n" "ror %B[sum]\n" "ror %A[sum]\n"
      "dec %[first]\n"
      "brne 3b\n"
      : [sum] "+&r"(sum), [carried] "+&r"(carried), [first] "=&d"(first), [second] "=&d"(second), [third] "=&d"(third),
        "+x"(column)
      : [step] "r"(step), [end] "r"(end), [upper] "r"(upper), [last] "r"(last), [above] "r"(above)
      : "r30", "r31", "memory");
  return (int32_t)sum;
}
#else
/* The largest of a column of elements `stride` apart. */
static inline int32_t tinyet_largest_s8(const int8_t *column, int32_t span, int32_t stride) {
  const int8_t *const end = column + span;
  tinyet_extent largest = INT8_MIN;
  for (; column != end; column += stride) {
    largest = *column > largest ? *column : largest;
  }
  return largest;
}

/* The sum, Q12.19, of the exponentials of a column's differences from its largest element: `exponentials`, Q0.31, are those
 * of 0, -1 ... steps, and zero from `count` on. */
static inline int32_t tinyet_sum_of_exponentials(const int8_t *column, int32_t span, int32_t stride, int32_t largest,
                                                 const TINYET_ROM int32_t *exponentials, int32_t count) {
  const int8_t *const end = column + span;
  int32_t sum = 0;
  for (; column != end; column += stride) {
    const tinyet_extent below = TINYET_EXTENT(largest) - *column;
    if (below < TINYET_EXTENT(count)) {
      sum += tinyet_as_addend(exponentials[below]);
    }
  }
  return sum;
}
#endif

/* 1 / (1 + x) for x in [0, 1), both Q0.31: three Newton steps in Q2.29. */
static inline int32_t tinyet_one_over_one_plus(int32_t x) {
  const int32_t half_denominator = (int32_t)((UINT32_C(0x80000000) + (uint32_t)x) >> 1);
  int32_t y = 1515870810 + tinyet_high_mul(half_denominator, -1010580540); /* 48/17 - 32/17 d */
  for (int32_t i = 0; i < 3; i++) {
    /* Errors are small from the start, so that the shift by two does not saturate. */
    y += tinyet_high_mul(y, (INT32_C(1) << 29) - tinyet_high_mul(half_denominator, y)) * 4;
  }
  return y >= (INT32_C(1) << 30) ? INT32_MAX : y * 2;
}

/* 1 / sum of a sum in Q12.19 with so many leading zeros, which the result lacks: Q0.31, times 2^(12 - headroom). */
static inline int32_t tinyet_reciprocal_of_sum(int32_t sum, int32_t headroom) {
  return tinyet_one_over_one_plus((int32_t)(((uint32_t)sum << headroom) - UINT32_C(0x80000000)));
}

/* log(x) for x >= 1, Q12.19 to Q5.26: x = r 2^e where r is the nearer to 2^-0.25 of two mantissas half a power of two apart;
 * a rational function gives log(r). */
static inline int32_t tinyet_log_of_sum(int32_t x) {
  const int32_t half_root = 1518500250, centre = 1805811301; /* 2^-0.5 and 2^-0.25 in Q0.31 */
  const int32_t headroom = tinyet_leading_zeros((uint32_t)x);
  const int32_t a = tinyet_high_mul(x * (INT32_C(1) << (headroom - 1)), half_root);
  const int32_t mantissa_a = a >= (INT32_C(1) << 30) ? INT32_MAX : 2 * a;
  const int32_t power_a = (12 - headroom) * (INT32_C(1) << 25) + (INT32_C(1) << 23); /* Q6.25 */
  const int32_t headroom_b = tinyet_leading_zeros((uint32_t)tinyet_high_mul(x, half_root)) - 1;
  const int64_t b = (int64_t)x << headroom_b;
  const int32_t mantissa_b = b > INT32_MAX ? INT32_MAX : (int32_t)b;
  const int32_t power_b = (12 - headroom_b) * (INT32_C(1) << 25) - (INT32_C(1) << 23);
  const int32_t r = mantissa_a < mantissa_b ? mantissa_a : mantissa_b;
  const int32_t power = power_a > power_b ? power_a : power_b;
  const int32_t p = (int32_t)(((int64_t)r + centre + 1) >> 1);
  const int32_t q = 2 * (r - centre);
  const int32_t square = tinyet_high_mul(q, q);
  const int32_t numerator = tinyet_high_mul(q, r) + tinyet_high_mul(tinyet_high_mul(q, square), 117049297);
  const int32_t slope = 1057819769 + q + tinyet_high_mul(127690142, square);
  const int32_t denominator = tinyet_high_mul(p, slope) + tinyet_high_mul(638450708, q);
  const int32_t rest = tinyet_high_mul(tinyet_round_shift(numerator, 6), tinyet_one_over_one_plus(denominator));
  return 2 * (tinyet_high_mul(power, 1488522236) + rest); /* log(2) in Q0.31 */
}

#ifdef __cplusplus
}
#endif

#endif
