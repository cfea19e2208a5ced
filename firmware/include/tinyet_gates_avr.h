/* SPDX-License-Identifier: Apache-2.0 */
/* Gates of recurrent layers for AVR: the functions of tinyet_gates.h in 16 bits, which all that they compute fits, with products of
 * bytes. Included by tinyet_gates.h. */
#ifndef TINYET_GATES_AVR_H
#define TINYET_GATES_AVR_H

#include "tinyet_dot_1x4.h"
#include "tinyet_recurrent.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __AVR__
/* a * b of two fixed-point numbers of 16 bits, to nearest, ties upward. */
static __attribute__((noinline, unused)) int16_t tinyet_gate_product(int16_t a, int16_t b) {
  int16_t high;
  uint8_t middle;
  __asm__(
      "muls %B[a], %B[b]\n" "movw %A[high], r0\n"
      "mul %A[a], %A[b]\n" "mov %[middle], r1\n"
      "mulsu %B[a], %A[b]\n" "sbc %B[high], %[zero]\n" /* the sign of what is added next */
      "add %[middle], r0\n" "adc %A[high], r1\n" "adc %B[high], %[zero]\n"
      "mulsu %B[b], %A[a]\n" "sbc %B[high], %[zero]\n"
      "add %[middle], r0\n" "adc %A[high], r1\n" "adc %B[high], %[zero]\n"
      "subi %[middle], 0xc0\n" "sbci %A[high], 0xff\n" "sbci %B[high], 0xff\n"
      "lsl %[middle]\n" "rol %A[high]\n" "rol %B[high]\n"
      "clr __zero_reg__\n"
      : [high] "=&d"(high), [middle] "=&d"(middle)
      : [a] "a"(a), [b] "a"(b), [zero] "r"((uint8_t)0)
      : "r0");
  return high;
}

static inline void tinyet_gate_clear(int16_t *values, int32_t count) {
  memset(values, 0, (size_t)count * sizeof *values);
}

/* exp(n / 2^15) for n in -2^22 ... -1: Q0.15. As elsewhere a polynomial, times a constant for each bit that is 0; of the square of
 * x2, which is 512 at most, nothing but two bits is left. */
static __attribute__((noinline, unused)) int16_t tinyet_gate_exp(int32_t n) {
  const uint16_t low = (uint16_t)n;
  const int16_t high = (int16_t)(n >> 16);
  if (high < -8) {
    return 0;
  }
  const int16_t x = (int16_t)((int16_t)(low & 8191u) - 4096);
  const int16_t x2 = tinyet_gate_product(x, x);
  int16_t sum = tinyet_gate_product(x2, x);
  if (x2 >= 222) { /* x2 * x2 + 81920 >= 2^17 */
    sum++;
  }
  if (x2 >= 425) { /* 2^18 */
    sum++;
  }
  const int16_t series = (int16_t)(tinyet_gate_product(sum, 10923) + x2);
  int16_t result = (int16_t)(tinyet_gate_product((int16_t)(x + ((series + 1) >> 1)), 28918) + 28918);
  if ((low & 0x2000u) == 0u) {
    result = tinyet_gate_product(result, 25520);
  }
  if ((low & 0x4000u) == 0u) {
    result = tinyet_gate_product(result, 19875);
  }
  if ((low & 0x8000u) == 0u) {
    result = tinyet_gate_product(result, 12055);
  }
  if ((high & 1) == 0) {
    result = tinyet_gate_product(result, 4435);
  }
  if ((high & 2) == 0) {
    result = tinyet_gate_product(result, 600);
  }
  if ((high & 4) == 0) {
    result = tinyet_gate_product(result, 11);
  }
  return result;
}

/* 2 / (1 + x) for x in [0, 1), Q0.15 to Q2.13: three Newton steps. */
static __attribute__((noinline, unused)) int16_t tinyet_gate_reciprocal(int16_t x) {
  const int16_t half_denominator = (int16_t)(16384 + (x >> 1));
  int16_t y = (int16_t)(23130 + tinyet_gate_product(half_denominator, -15420));
  for (uint8_t i = 0; i < 3u; i++) {
    const int16_t less = (int16_t)(8192 - tinyet_gate_product(half_denominator, y));
    y = (int16_t)(y + 4 * tinyet_gate_product(y, less));
  }
  return y;
}

/* Of each value. Q3.12 to Q0.15. */
static __attribute__((noinline, unused)) void tinyet_gate_sigmoid(int16_t *values, int32_t count) {
  for (tinyet_extent left = TINYET_EXTENT(count); left != 0; left--, values++) {
    const int16_t x = *values, sign = x < 0 ? -1 : 0;
    int16_t y = 16384;
    if (x != 0) {
      const int32_t size = (int32_t)(sign - (x ^ sign)) * 8;
      y = tinyet_gate_reciprocal(tinyet_gate_exp(size));
      y = y >= 16384 ? INT16_MAX : (int16_t)(2 * y);
      y = (int16_t)((y ^ sign) & INT16_MAX); /* 32767 - y of a negative one */
    }
    *values = y;
  }
}

/* Of each value, of so many integer bits, 0 ... 6, to Q0.15. */
static __attribute__((noinline, unused)) void tinyet_gate_tanh(int16_t *values, int32_t count, int32_t integer_bits) {
  for (tinyet_extent left = TINYET_EXTENT(count); left != 0; left--, values++) {
    const int16_t x = *values, sign = x < 0 ? -1 : 0;
    int16_t y = 0;
    if (x != 0) {
      int32_t size = sign - (x ^ sign);
      for (int8_t i = (int8_t)integer_bits; i >= 0; i--) {
        size *= 2;
      }
      y = (int16_t)(tinyet_gate_reciprocal(tinyet_gate_exp(size)) - 8192);
      y = y >= 8192 ? INT16_MAX : (int16_t)(4 * y);
      y = (int16_t)((y ^ sign) - sign);
    }
    *values = y;
  }
}

/* tinyet_requantize of a sum whose form is not negative. */
static inline int32_t tinyet_gate_requantize(int32_t sum, int32_t multiplier, int32_t form) {
  return tinyet_round_shift(tinyet_high_mul(sum, multiplier), form + 1);
}

/* Adds to sums, [gates][units], what a row of the part's inputs comes to in Q3.12, saturated. units: rounded up to fours. */
static __attribute__((noinline, unused)) void tinyet_gate_sums(const int8_t *input, const tinyet_gate_part_s8 *part,
                                                               int32_t gates, int32_t units, int16_t *sums) {
  const tinyet_extent depth = TINYET_EXTENT(part->depth), blocks = depth >> 2;
  const uint8_t rest = (uint8_t)depth & 3u;
  const TINYET_ROM int32_t *bias = part->bias;
  int32_t rows[4];
  tinyet_dot_run of = {input, part->weights, rows, 0};
  for (uint8_t gate = 0; gate < (uint8_t)gates; gate++) {
    const int32_t multiplier = part->multiplier[gate], form = part->form[gate];
    for (tinyet_extent n = TINYET_EXTENT(units); n > 0; n -= 4) {
      for (uint8_t i = 0; i < 4u; i++) {
        rows[i] = *bias++;
      }
      of.x = input;
      tinyet_dot_add(&of, blocks, rest);
      of.w += rest != 0u ? 16u - rest : 0u;
      for (uint8_t i = 0; i < 4u; i++) {
        const int32_t added = form >= 0 ? tinyet_gate_requantize(rows[i], multiplier, form)
                                        : tinyet_requantize_any(rows[i], multiplier, form + 31);
        const int32_t sum = *sums + added;
        *sums++ = sum > INT16_MAX ? INT16_MAX : sum < INT16_MIN ? INT16_MIN : (int16_t)sum;
      }
    }
  }
}
#endif

#ifdef __cplusplus
}
#endif

#endif
