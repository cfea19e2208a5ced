/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of bytes for AVR, which adds them up in three registers, taken 128 more than they are: then they have no sign that would
 * have to be extended. Nothing for other cores. */
#ifndef TINYET_FOUR_SUMS_H
#define TINYET_FOUR_SUMS_H

#include "tinyet_common.h"

#ifdef __AVR__
__extension__ typedef __uint24 tinyet_sum_of_bytes;

typedef struct {
  tinyet_extent rows, columns, column_step;
  tinyet_extent jump; /* from behind a row to the next */
  tinyet_sum_of_bytes sums[4];
} tinyet_four_sums;

TINYET_STATIC_ASSERT(offsetof(tinyet_four_sums, sums) == 8 && sizeof(tinyet_sum_of_bytes) == 3, "as the assembly has it");

/* The sums of four channels; one tap at least. */
static __attribute__((noinline, unused)) void tinyet_add_four(const int8_t *x, tinyet_four_sums *of) {
#define ONE(load, a, b, c) \
  load "\n" "subi r26, 0x80\n" "add " a ", r26\n" "adc " b ", __zero_reg__\n" "adc " c ", __zero_reg__\n"
  __asm__ volatile(
      "ld r18, X+\n" "ld r19, X+\n" "ld r20, X+\n" "ld r21, X+\n"
      "ld r22, X+\n" "ld r23, X+\n" "ld r24, X+\n" "ld r25, X+\n"
      "movw r14, r26\n"
      "clr r2\n" "clr r3\n" "movw r4, r2\n" "movw r6, r2\n" "movw r8, r2\n" "movw r10, r2\n" "movw r12, r2\n"
      "1:\n"
      "movw r16, r20\n"
      "2:\n" ONE("ld r26, Z", "r2", "r3", "r4") ONE("ldd r26, Z+1", "r5", "r6", "r7") ONE("ldd r26, Z+2", "r8", "r9", "r10")
      ONE("ldd r26, Z+3", "r11", "r12", "r13")
      "add r30, r22\n"
      "adc r31, r23\n"
      "subi r16, 1\n"
      "sbci r17, 0\n"
      "brne 2b\n"
      "add r30, r24\n"
      "adc r31, r25\n"
      "subi r18, 1\n"
      "sbci r19, 0\n"
      "brne 1b\n"
      "movw r26, r14\n"
      "st X+, r2\n" "st X+, r3\n" "st X+, r4\n" "st X+, r5\n" "st X+, r6\n" "st X+, r7\n"
      "st X+, r8\n" "st X+, r9\n" "st X+, r10\n" "st X+, r11\n" "st X+, r12\n" "st X+, r13\n"
      : "+z"(x), "+x"(of)
      :
      : "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "r16", "r17", "r18", "r19",
        "r20", "r21", "r22", "r23", "r24", "r25", "memory");
#undef ONE
}
#endif

#endif
