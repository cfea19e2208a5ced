/* SPDX-License-Identifier: Apache-2.0 */
/* The average of a window of int8 or int16 values, ties away from zero, without a division where Python proved a reciprocal
 * exact for every sum that can occur (tinyet/ops/shared/averaging.py). */
#ifndef TINYET_AVERAGE_H
#define TINYET_AVERAGE_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One row of the table of divisions: how the sum of a window with a given number of taps is rounded. */
typedef struct {
  uint32_t multiplier; /* 0: divide */
  uint32_t shift;
  int32_t start;  /* what taps outside the image add to the sum */
  int32_t offset; /* makes the dividend non-negative and rounds */
  uint32_t even;  /* 1 for an even divisor */
  int32_t bias;   /* undoes the offset */
  int32_t divisor;
} tinyet_division;

enum { TINYET_DIVISION_FIELDS = 7 };

static inline tinyet_division tinyet_division_at(const TINYET_ROM int32_t *table, int32_t row) {
  const TINYET_ROM int32_t *const r = table + row * TINYET_DIVISION_FIELDS;
  const tinyet_division d = {(uint32_t)r[0], (uint32_t)r[1], r[2], r[3], (uint32_t)r[4], r[5], r[6]};
  return d;
}

#ifdef __AVR__
/* A function of its own has the registers that it needs; inlined, sums would be kept in memory. */
#define TINYET_AVERAGE_APART __attribute__((noinline, unused))

/* Where there is a reciprocal. A shift by eight bits is moves. */
static TINYET_AVERAGE_APART int32_t tinyet_multiplied_average(int32_t sum, const tinyet_division *d) {
  uint32_t p;
  uint8_t byte, zero;
#define TINYET_AVR_BYTES(first, next, from)                                                          \
  "ldd %[byte], Z+" #from "\n" first " %A[x], %[byte]\n" "ldd %[byte], Z+" #from "+1\n" next         \
  " %B[x], %[byte]\n" "ldd %[byte], Z+" #from "+2\n" next " %C[x], %[byte]\n" "ldd %[byte], Z+" #from \
  "+3\n" next " %D[x], %[byte]\n"
#define TINYET_AVR_MUL(x) "mul %" x "[x], %[byte]\n"
#define TINYET_AVR_CARRY(to) "adc %" to "[p], %[zero]\n"
  __asm__(
      "bst %D[x], 7\n" TINYET_AVR_BYTES("add", "adc", 12)
      "brtc 1f\n"
      "ldd %[byte], Z+16\n"
      "sub %A[x], %[byte]\n" "sbci %B[x], 0\n" "sbci %C[x], 0\n" "sbci %D[x], 0\n"
      "1:\n"
      "clr %[zero]\n"
      "ldd %[byte], Z+0\n"
      TINYET_AVR_MUL("A") "movw %A[p], r0\n"
      TINYET_AVR_MUL("C") "movw %C[p], r0\n"
      TINYET_AVR_MUL("D") "add %D[p], r0\n"
      TINYET_AVR_MUL("B") "add %B[p], r0\n" "adc %C[p], r1\n" TINYET_AVR_CARRY("D")
      "ldd %[byte], Z+1\n"
      TINYET_AVR_MUL("C") "add %D[p], r0\n"
      TINYET_AVR_MUL("B") "add %C[p], r0\n" "adc %D[p], r1\n"
      TINYET_AVR_MUL("A") "add %B[p], r0\n" "adc %C[p], r1\n" TINYET_AVR_CARRY("D")
      "ldd %[byte], Z+2\n"
      TINYET_AVR_MUL("B") "add %D[p], r0\n"
      TINYET_AVR_MUL("A") "add %C[p], r0\n" "adc %D[p], r1\n"
      "ldd %[byte], Z+3\n"
      TINYET_AVR_MUL("A") "add %D[p], r0\n"
      "clr __zero_reg__\n"
      "ldd %[byte], Z+4\n"
      "2:\n"
      "cpi %[byte], 8\n"
      "brlo 3f\n"
      "mov %A[p], %B[p]\n" "mov %B[p], %C[p]\n" "mov %C[p], %D[p]\n" "clr %D[p]\n"
      "subi %[byte], 8\n"
      "rjmp 2b\n"
      "3:\n"
      "subi %[byte], 1\n"
      "brcs 4f\n"
      "lsr %D[p]\n" "ror %C[p]\n" "ror %B[p]\n" "ror %A[p]\n"
      "rjmp 3b\n"
      "4:\n"
      "movw %A[x], %A[p]\n"
      "movw %C[x], %C[p]\n" TINYET_AVR_BYTES("sub", "sbc", 20)
      : [p] "=&r"(p), [x] "+&d"(sum), [byte] "=&d"(byte), [zero] "=&r"(zero)
      : "z"(d), "m"(*d)
      : "r0");
#undef TINYET_AVR_BYTES
#undef TINYET_AVR_MUL
#undef TINYET_AVR_CARRY
  return sum;
}
#else
#define TINYET_AVERAGE_APART inline
#endif

static TINYET_AVERAGE_APART int32_t tinyet_divided_average(int32_t sum, const tinyet_division *d) {
  const uint32_t u = (uint32_t)(sum + d->offset) - (((uint32_t)sum >> 31) & d->even);
  const uint32_t quotient = d->multiplier != 0u ? (u * d->multiplier) >> d->shift : u / (uint32_t)d->divisor;
  return (int32_t)quotient - d->bias;
}

/* Without saturation. */
static inline int32_t tinyet_divide_wide(int32_t sum, const tinyet_division *d) {
#ifdef __AVR__
  if (d->multiplier != 0u) {
    return tinyet_multiplied_average(sum, d);
  }
#endif
  return tinyet_divided_average(sum, d);
}

static inline int8_t tinyet_divide(int32_t sum, const tinyet_division *d) {
  return (int8_t)tinyet_clamp(tinyet_divide_wide(sum, d), INT8_MIN, INT8_MAX);
}

#ifdef __cplusplus
}
#endif

#endif
