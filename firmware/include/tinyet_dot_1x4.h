/* SPDX-License-Identifier: Apache-2.0 */
/* The multiply loop of fully connected layers, 1x4: a row of int8_t inputs by four outputs' weights. */
#ifndef TINYET_DOT_1X4_H
#define TINYET_DOT_1X4_H

#include "tinyet_int16x2.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __AVR__
/* Blocks whose sums have no more than 24 bits. */
enum { TINYET_DOT_BLOCKS = 127 };

typedef struct {
  const int8_t *x;
  const TINYET_ROM int8_t *w;
  int32_t *sums;
  uint8_t blocks;
} tinyet_dot_run;

/* Adds up to TINYET_DOT_BLOCKS blocks, one at least, to four sums, and leaves x and w behind them. A product's sign is taken off
 * the upper byte of a sum of 24 bits. */
static __attribute__((noinline, unused)) void tinyet_dot_blocks(tinyet_dot_run *of) {
#define ONE(x, a, b, c) \
  TINYET_LPM "r22, Z+\n" "muls " x ", r22\n" "add " a ", r0\n" "adc " b ", r1\n" "adc " c ", r14\n" "sbrc r1, 7\n" "dec " c "\n"
#define ROW(a, b, c) ONE("r18", a, b, c) ONE("r19", a, b, c) ONE("r20", a, b, c) ONE("r21", a, b, c)
#define ADD(byte, with) "ld r18, X\n" with " r18, " byte "\n" "st X+, r18\n"
#define ADD_SUM(a, b, c) \
  "clr r19\n" "sbrc " c ", 7\n" "com r19\n" ADD(a, "add") ADD(b, "adc") ADD(c, "adc") ADD("r19", "adc")
  __asm__ volatile(
      "ld r26, Z\n" "ldd r27, Z+1\n" "ldd r24, Z+4\n" "ldd r25, Z+5\n" "ldd r17, Z+6\n"
      "push r30\n" "push r31\n"
      "ldd r0, Z+2\n" "ldd r31, Z+3\n" "mov r30, r0\n"
      "clr r2\n" "clr r3\n" "movw r4, r2\n" "movw r6, r2\n" "movw r8, r2\n" "movw r10, r2\n" "movw r12, r2\n"
      "clr r14\n"
      "1:\n"
      "ld r18, X+\n" "ld r19, X+\n" "ld r20, X+\n" "ld r21, X+\n"
      ROW("r2", "r3", "r4") ROW("r5", "r6", "r7") ROW("r8", "r9", "r10") ROW("r11", "r12", "r13")
      "dec r17\n"
      "breq 2f\n"
      "rjmp 1b\n"
      "2:\n"
      "movw r20, r30\n"
      "pop r31\n" "pop r30\n"
      "st Z, r26\n" "std Z+1, r27\n" "std Z+2, r20\n" "std Z+3, r21\n"
      "movw r26, r24\n"
      ADD_SUM("r2", "r3", "r4") ADD_SUM("r5", "r6", "r7") ADD_SUM("r8", "r9", "r10") ADD_SUM("r11", "r12", "r13")
      "clr __zero_reg__\n"
      : "+z"(of)
      :
      : "r0", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r17", "r18", "r19", "r20", "r21",
        "r22", "r24", "r25", "r26", "r27", "memory");
#undef ONE
#undef ROW
#undef ADD
#undef ADD_SUM
}

/* All blocks of a row, and what is left of it. */
static __attribute__((noinline, unused)) void tinyet_dot_add(tinyet_dot_run *of, tinyet_extent blocks, uint8_t rest) {
  for (; blocks > 0; blocks -= TINYET_DOT_BLOCKS) {
    of->blocks = (uint8_t)(blocks < TINYET_DOT_BLOCKS ? blocks : TINYET_DOT_BLOCKS);
    tinyet_dot_blocks(of);
  }
  for (; rest != 0u; rest--) {
    const int16_t value = *of->x++;
    for (uint8_t i = 0; i < 4u; i++) {
      of->sums[i] += (int16_t)(value * of->w[4u * i]);
    }
    of->w++;
  }
}
#endif

/* Four outputs at once: one load of the input feeds four multiply-accumulates. Weights are interleaved, four bytes of each
 * output in turn, so that they are read front to back; `blocks` of four inputs, then `rest` of them one by one. Not
 * inlined, because the loop needs nearly all registers. */
static __attribute__((noinline, unused)) const TINYET_ROM int8_t *
tinyet_dot_1x4(const int8_t *x, const TINYET_ROM int8_t *w, int32_t blocks, int32_t rest, int32_t sums[4]) {
#ifdef __AVR__
  tinyet_dot_run of = {x, w, sums, 0};
  tinyet_dot_add(&of, TINYET_EXTENT(blocks), (uint8_t)rest);
  return of.w;
#else
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
#endif
}

#ifdef __cplusplus
}
#endif

#endif
