/* SPDX-License-Identifier: Apache-2.0 */
/* Gates of recurrent layers for AVR: the functions of tinyet_gates.h in 16 bits, which all that they compute fits, with products
 * of bytes. Included by tinyet_gates.h. */
#ifndef TINYET_GATES_AVR_H
#define TINYET_GATES_AVR_H

#include "tinyet_dot_1x4.h"
#include "tinyet_recurrent.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __AVR__
static inline void tinyet_gate_clear(int16_t *values, int32_t count) {
  memset(values, 0, (size_t)count * sizeof *values);
}

/* Of each value, with n integer bits, to Q0.15; times: 2^(n + 1): the sigmoid, or where `tanh` is not 0 the hyperbolic tangent. As
 * elsewhere an exponential of minus the magnitude, by a polynomial and a constant for each bit that is 0, and three Newton steps
 * to 2 / (1 + it). A product of two numbers is (a * b + 2^14) >> 15; constants are twice as large, for then the result is the
 * upper two bytes. What a product's lowest byte cannot change is left out, and bytes that only repeat a sign.
 *
 * Register 2 is zero. 16 and 17 are the value and what comes of it, 18 to 20 a product (20, 18, 19: the lowest first), 22 and 23
 * another factor, 30 and 31 the upper bytes of what the exponential is of. */
static __attribute__((noinline, unused)) void tinyet_gate_values(int16_t *values, tinyet_extent count, uint8_t times,
                                                                 uint8_t tanh) {
#define ADD "add r20, r0\n" "adc r18, r1\n"
#define ADD_CARRY ADD "adc r19, r2\n"
/* r19:r18:r20 of r17:r16 and r23:r22, none of which has a sign. */
#define PRODUCT \
  "mul r17, r23\n" "movw r18, r0\n" "mul r16, r22\n" "mov r20, r1\n" "mul r17, r22\n" ADD_CARRY "mul r16, r23\n" ADD_CARRY
#define ROUND_BYTE "subi r20, 0xc0\n" "sbci r18, 0xff\n" "lsl r20\n" "rol r18\n"
#define ROUND "subi r20, 0xc0\n" "sbci r18, 0xff\n" "sbci r19, 0xff\n" "lsl r20\n" "rol r18\n" "rol r19\n"
/* Times half of a constant, where a bit is 0. */
#define TIMES(byte, bit, upper, lower)                                                                           \
  "sbrc " byte ", " bit "\n" "rjmp 4f\n" "ldi r23, " upper "\n" "ldi r22, " lower "\n" "rcall 20f\n" "4:\n"
  __asm__ volatile(
      "clr r2\n"
      "1:\n"
      "ld r16, X+\n"
      "ld r17, X\n"
      "bst r17, 7\n" /* the sign */
      "mov r18, r16\n"
      "or r18, r17\n"
      "brne 2f\n"
      "rjmp 13f\n"
      /* Minus the magnitude, of 24 bits, n / 2^15. */
      "2:\n"
      "brts 3f\n"
      "neg r17\n" "neg r16\n" "sbc r17, r2\n"
      "3:\n"
      "mov r19, %[times]\n"
      "mul r16, r19\n" "mov r21, r0\n" "mov r30, r1\n"
      "mulsu r17, r19\n" "add r30, r0\n" "mov r31, r1\n" "adc r31, r2\n"
      "ldi r16, 0\n"
      "ldi r17, 0\n"
      "cpi r31, 0xf8\n" /* exp(-16) is nothing */
      "brsh 5f\n"
      "rjmp 6f\n"
      "5:\n"
      /* x, of 14 bits: n modulo 2^13, less 2^12 */
      "mov r16, r21\n"
      "mov r17, r30\n"
      "andi r17, 0x1f\n"
      "subi r17, 0x10\n"
      /* x2 = x * x, up to 512 */
      "muls r17, r17\n" "movw r18, r0\n"
      "mul r16, r16\n" "mov r20, r1\n"
      "mulsu r17, r16\n" "lsl r0\n" "rol r1\n" "sbc r19, r2\n" ADD_CARRY ROUND
      "movw r22, r18\n"
      /* x2 * x, a byte, and x2 * x2 / 4 with both roundings: one from 222 on, two from 425 on */
      "muls r23, r17\n" "mov r18, r0\n"
      "mul r22, r16\n" "mov r20, r1\n"
      "mulsu r17, r22\n" ADD
      "mul r23, r16\n" ADD ROUND_BYTE
      "cpi r22, 222\n" "cpc r23, r2\n" "sbci r18, 0xff\n"
      "ldi r21, 1\n"
      "cpi r22, 169\n" "cpc r23, r21\n" "sbci r18, 0xff\n"
      /* a third of it, 10923, with x2, halved */
      "ldi r21, 0xab\n"
      "ldi r19, 0x2a\n"
      "mulsu r18, r21\n" "mov r20, r1\n" "sbc r21, r21\n"
      "muls r18, r19\n" "mov r18, r21\n" ADD ROUND_BYTE
      "clr r19\n"
      "sbrc r18, 7\n"
      "dec r19\n"
      "add r22, r18\n" "adc r23, r19\n"
      "subi r22, 0xff\n" "sbci r23, 0xff\n"
      "lsr r23\n" "ror r22\n"
      "add r16, r22\n" "adc r17, r23\n"
      /* times exp(-1/8), 28918, and as much again */
      "ldi r22, 0xec\n"
      "ldi r23, 0xe1\n"
      "mulsu r17, r23\n" "movw r18, r0\n"
      "mul r16, r22\n" "mov r20, r1\n"
      "mulsu r17, r22\n" "sbc r19, r2\n" ADD_CARRY
      "mul r16, r23\n" ADD_CARRY
      "subi r20, 0x80\n" "sbci r18, 0x09\n" "sbci r19, 0x8f\n"
      "movw r16, r18\n"
      TIMES("r30", "5", "0xc7", "0x60") /* exp(-1/4) */
      TIMES("r30", "6", "0x9b", "0x46")
      TIMES("r30", "7", "0x5e", "0x2e")
      TIMES("r31", "0", "0x22", "0xa6")
      TIMES("r31", "1", "0x04", "0xb0")
      TIMES("r31", "2", "0x00", "0x16")
      /* d = (1 + x) / 2 in r23:r22, and 23130 - 15420 d, whose product rounds ties down */
      "6:\n"
      "lsr r17\n" "ror r16\n"
      "subi r17, 0xc0\n"
      "movw r22, r16\n"
      "ldi r21, 0x78\n"
      "mul r22, r21\n" "movw r18, r0\n"
      "mul r23, r21\n" "movw r16, r0\n"
      "mov r20, r19\n"
      "add r19, r18\n" "adc r16, r20\n" "adc r17, r2\n"
      "add r19, r0\n" "adc r16, r1\n" "adc r17, r2\n"
      "subi r18, 0x01\n" "sbci r19, 0x80\n" "sbci r16, 0xff\n" "sbci r17, 0xff\n"
      "ldi r20, 0x5a\n"
      "ldi r21, 0x5a\n"
      "sub r20, r16\n" "sbc r21, r17\n"
      "movw r16, r20\n"
      /* y += 4 (y * (1 - d * y)): the first time what is in brackets has 16 bits */
      PRODUCT ROUND
      "ldi r21, 0x20\n"
      "clr r30\n"
      "sub r30, r18\n" "sbc r21, r19\n"
      "mulsu r21, r17\n" "movw r18, r0\n"
      "mul r30, r16\n" "mov r20, r1\n"
      "mulsu r21, r16\n" "sbc r19, r2\n" ADD_CARRY
      "mul r30, r17\n" ADD_CARRY ROUND
      "lsl r18\n" "rol r19\n" "lsl r18\n" "rol r19\n"
      "add r16, r18\n" "adc r17, r19\n"
      /* then eight, of the lower three bytes of d * y, r18:r20:r21 */
      "mul r17, r23\n" "mov r18, r0\n"
      "mul r16, r22\n" "mov r20, r1\n" "mov r21, r0\n"
      "mul r17, r22\n" ADD
      "mul r16, r23\n" ADD
      "mov r30, r20\n" "mov r19, r18\n"
      "subi r30, 0xc0\n" "sbci r19, 0xff\n" "lsl r30\n" "rol r19\n"
      "neg r19\n"
      "mulsu r19, r16\n" "mov r30, r1\n" "sbc r31, r31\n"
      "mulsu r19, r17\n" "add r30, r0\n" "adc r31, r1\n"
      "subi r30, 0xc0\n" "sbci r31, 0xff\n" "lsl r30\n" "rol r31\n"
      "lsl r31\n" "lsl r31\n"
      "mov r19, r31\n"
      "clr r31\n"
      "sbrc r19, 7\n"
      "dec r31\n"
      "add r16, r19\n" "adc r17, r31\n"
      /* The last time what is in brackets is -2 to 3, and its product 1 of 2 and 3, but of y below 2^13, -1 of -2, or 0 */
      "mulsu r19, r22\n" "sbc r18, r2\n" "add r21, r0\n" "adc r20, r1\n" "adc r18, r2\n"
      "mulsu r19, r23\n" ADD ROUND_BYTE
      "cpi r18, 0xff\n"
      "brge 7f\n"
      "cpi r17, 0x20\n"
      "brlo 7f\n"
      "subi r16, 0xfc\n" "sbci r17, 0xff\n"
      "7:\n"
      "cpi r18, 2\n"
      "brlt 7f\n"
      "subi r16, 4\n" "sbci r17, 0\n"
      "7:\n"
      "tst %[tanh]\n"
      "brne 8f\n"
      /* Twice y, saturated; 32767 less it of a negative number */
      "lsl r16\n" "rol r17\n"
      "brpl 9f\n"
      "ldi r16, 0xff\n"
      "ldi r17, 0x7f\n"
      "9:\n"
      "brtc 11f\n"
      "com r16\n"
      "com r17\n"
      "andi r17, 0x7f\n"
      "rjmp 11f\n"
      /* Four times y - 1, saturated, with the number's sign */
      "8:\n"
      "subi r17, 0x20\n"
      "cpi r17, 0x20\n"
      "brlt 9f\n"
      "ldi r16, 0xff\n"
      "ldi r17, 0x7f\n"
      "rjmp 10f\n"
      "9:\n"
      "lsl r16\n" "rol r17\n" "lsl r16\n" "rol r17\n"
      "10:\n"
      "brtc 11f\n"
      "neg r17\n" "neg r16\n" "sbc r17, r2\n"
      "11:\n"
      "st X, r17\n"
      "st -X, r16\n"
      "adiw r26, 2\n"
      "sbiw %[count], 1\n"
      "breq 12f\n"
      "rjmp 1b\n"
      /* Of zero */
      "13:\n"
      "cpse %[tanh], r2\n"
      "rjmp 11b\n"
      "ldi r17, 0x40\n"
      "rjmp 11b\n"
      "20:\n" PRODUCT
      "subi r20, 0x80\n" "sbci r18, 0xff\n" "sbci r19, 0xff\n"
      "movw r16, r18\n"
      "ret\n"
      "12:\n"
      "clr __zero_reg__\n"
      : "+x"(values), [count] "+w"(count)
      : [times] "r"(times), [tanh] "r"(tanh)
      : "r0", "r2", "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r30", "r31", "memory");
#undef ADD
#undef ADD_CARRY
#undef PRODUCT
#undef ROUND_BYTE
#undef ROUND
#undef TIMES
}

/* Of each value. Q3.12 to Q0.15. */
static inline void tinyet_gate_sigmoid(int16_t *values, int32_t count) {
  tinyet_gate_values(values, TINYET_EXTENT(count), 8u, 0u);
}

/* Of each value, of so many integer bits, 0 ... 6, to Q0.15. */
static inline void tinyet_gate_tanh(int16_t *values, int32_t count, int32_t integer_bits) {
  tinyet_gate_values(values, TINYET_EXTENT(count), (uint8_t)(2u << (uint8_t)integer_bits), 1u);
}

/* tinyet_requantize of a sum whose form is not negative. */
static inline int32_t tinyet_gate_requantize(int32_t sum, int32_t multiplier, int32_t form) {
  return tinyet_round_shift(tinyet_high_mul(sum, multiplier), form + 1);
}

/* The sums of a gate, four rows at a time. x: inputs, blocks of four of them; to: where sums are added; factor: twice the
 * multiplier; shift: form + 1; general: 1 where the form is negative, or -2^23 may be rounded to itself, from which 24 bits cannot
 * take one; left: groups of four rows; sums: of the last group, those that near has bits of: they are not rounded; upper: factor
 * over 2^(8 + shift); above, below: what is added to a sum's product with that if it has no sign, and if it has one. */
typedef struct {
  const int8_t *x;
  const TINYET_ROM int8_t *w;
  const TINYET_ROM int32_t *bias;
  int16_t *to;
  uint32_t factor;
  uint8_t blocks, shift, general, near;
  tinyet_extent left;
  int32_t sums[4];
  uint8_t upper[3], above, below;
} tinyet_gate_run;

TINYET_STATIC_ASSERT(offsetof(tinyet_gate_run, factor) == 8 && offsetof(tinyet_gate_run, upper) == 34,
                     "as the assembly has it");

/* Groups up to one that has a sum of more than 24 bits, or one that rounds near a tie. Products of inputs and weights are summed
 * as in tinyet_dot_blocks.
 *
 * Both roundings are one: (p + 2^31 + 2^(31 + shift) - (p < 0 ? 2^32 : 0)) / 2^(32 + shift), rounded down, of the product p of sum
 * and factor. Sums of 16 bits are multiplied by `upper`, which leaves the integer above two bytes. What is left out there would
 * change the upper of the two: the factor by 0.5 either way, as the sum's sign is, products by 0 to less than 3, and what is added
 * lacks up to 0.5, or 0.5 to 1 where the sum has a sign. That is 0 to less than 4: from 253 on the sum is rounded as those of 24
 * bits are. Of theirs with the factor the lower bytes are left out: together they add less than five to the byte below the
 * integer, so that a sum is near a tie if less than that is missing there.
 *
 * Registers 2 to 13 are sums, 14 is zero. Then 2, 18, 3 and 19 are one of them, 20 to 22 `upper`, 23 and 15 what is added, 16, 24
 * and 25 the product, 17 is zero, and 4 what `near` will be. Of 24 bits 2, 3, 18 and 19 are a sum, 16 its sign, 20 to 23 the
 * factor, 24, 25, 14 and 15 their product from the byte below the integer on. */
static __attribute__((noinline, unused)) void tinyet_gate_rows(tinyet_gate_run *of) {
#define ONE(x, a, b, c) \
  TINYET_LPM "r22, Z+\n" "muls " x ", r22\n" "add " a ", r0\n" "adc " b ", r1\n" "adc " c ", r14\n" "sbrc r1, 7\n" "dec " c "\n"
#define ROW(a, b, c) ONE("r18", a, b, c) ONE("r19", a, b, c) ONE("r20", a, b, c) ONE("r21", a, b, c)
#define LEFT(at, bit)                                                                                        \
  "rcall 4f\n" "brtc 3f\n" "std Y+" at ", r2\n" "std Y+" at "+1, r3\n" "std Y+" at "+2, r18\n"               \
  "std Y+" at "+3, r19\n" "ldi r16, " bit "\n" "or r4, r16\n" "ldd r16, Y+14\n" "bst r16, 0\n" "3:\n"
#define SIGN(of, to) "mov " to ", " of "\n" "lsl " to "\n" "sbc " to ", " to "\n"
#define UPPER "ldd r20, Y+34\n" "ldd r21, Y+35\n" "ldd r22, Y+36\n" "ldd r23, Y+37\n" "ldd r15, Y+38\n"
#define CARRY_24 "adc r24, r17\n" "adc r25, r17\n"
#define CARRY_14 "adc r14, r17\n" "adc r15, r17\n"
#define CARRY_25 "adc r25, r17\n" CARRY_14
  __asm__ volatile(
      "push r28\n"
      "push r29\n"
      "movw r28, r30\n"
      "1:\n"
      "ldd r26, Y+0\n" "ldd r27, Y+1\n"
      "ldd r30, Y+2\n" "ldd r31, Y+3\n"
      "ldd r17, Y+12\n"
      "clr r2\n" "clr r3\n" "movw r4, r2\n" "movw r6, r2\n" "movw r8, r2\n" "movw r10, r2\n" "movw r12, r2\n"
      "clr r14\n"
      "2:\n"
      "ld r18, X+\n" "ld r19, X+\n" "ld r20, X+\n" "ld r21, X+\n"
      ROW("r2", "r3", "r4") ROW("r5", "r6", "r7") ROW("r8", "r9", "r10") ROW("r11", "r12", "r13")
      "dec r17\n"
      "breq 3f\n"
      "rjmp 2b\n"
      "3:\n"
      "std Y+2, r30\n" "std Y+3, r31\n"
      "ldd r30, Y+4\n" "ldd r31, Y+5\n"
      "ldd r26, Y+6\n" "ldd r27, Y+7\n"
      UPPER
      "ldd r16, Y+14\n"
      "bst r16, 0\n"
      "mov r18, r3\n" "mov r3, r4\n"
      "clr r4\n" LEFT("18", "1")
      "mov r2, r5\n" "mov r18, r6\n" "mov r3, r7\n" LEFT("22", "2")
      "mov r2, r8\n" "mov r18, r9\n" "mov r3, r10\n" LEFT("26", "4")
      "mov r2, r11\n" "mov r18, r12\n" "mov r3, r13\n" LEFT("30", "8")
      "std Y+4, r30\n" "std Y+5, r31\n"
      "std Y+6, r26\n" "std Y+7, r27\n"
      "std Y+15, r4\n"
      "ldd r24, Y+16\n" "ldd r25, Y+17\n"
      "sbiw r24, 1\n"
      "std Y+16, r24\n" "std Y+17, r25\n"
      "breq 3f\n"
      "tst r4\n"
      "brne 3f\n"
      "rjmp 1b\n"
      "3:\n"
      "rjmp 9f\n"
      /* One sum, to which the bias is added; T: it is not rounded */
      "4:\n"
      "clr r19\n"
      "sbrc r3, 7\n"
      "dec r19\n"
      TINYET_LPM "r16, Z+\n" "add r2, r16\n"
      TINYET_LPM "r16, Z+\n" "adc r18, r16\n"
      TINYET_LPM "r16, Z+\n" "adc r3, r16\n"
      TINYET_LPM "r16, Z+\n" "adc r19, r16\n"
      "brts 5f\n" SIGN("r18", "r16")
      "cp r3, r16\n" "cpc r19, r16\n"
      "brne 5f\n"
      "mulsu r18, r22\n" "movw r24, r0\n"
      "mul r2, r22\n" "mov r16, r0\n" "add r24, r1\n" "adc r25, r17\n"
      "mulsu r18, r21\n" "sbc r25, r17\n" "add r16, r0\n" "adc r24, r1\n" "adc r25, r17\n"
      "mul r2, r21\n" "add r16, r1\n" CARRY_24
      "mulsu r18, r20\n" "sbc r24, r17\n" "sbc r25, r17\n" "add r16, r1\n" CARRY_24
      "mov r14, r23\n"
      "sbrc r18, 7\n"
      "mov r14, r15\n"
      "add r16, r14\n" CARRY_24
      "cpi r16, 253\n"
      "brsh 5f\n"
      "ld r14, X+\n"
      "ld r16, X\n"
      "add r24, r14\n" "adc r25, r16\n"
      "brvs 8f\n"
      "7:\n"
      "st X, r25\n"
      "st -X, r24\n"
      "adiw r26, 2\n"
      "ret\n"
      /* Saturated: the sign is the other one's */
      "8:\n" SIGN("r25", "r24")
      "mov r25, r24\n"
      "subi r25, 0x80\n"
      "rjmp 7b\n"
      /* It stays as it is */
      "6:\n"
      "adiw r26, 2\n"
      "set\n" UPPER
      "ret\n"
      "5:\n"
      "mov r16, r18\n" "mov r18, r3\n" "mov r3, r16\n"
      "ldd r20, Y+8\n" "ldd r21, Y+9\n" "ldd r22, Y+10\n" "ldd r23, Y+11\n"
      "brts 6b\n" SIGN("r18", "r16")
      "cpse r16, r19\n"
      "rjmp 6b\n"
      "mulsu r18, r23\n" "movw r14, r0\n"
      "mul r2, r23\n" "movw r24, r0\n"
      "mul r3, r23\n" "add r25, r0\n" "adc r14, r1\n" "adc r15, r17\n"
      "mulsu r18, r22\n" "sbc r15, r17\n" "add r25, r0\n" "adc r14, r1\n" "adc r15, r17\n"
      "mul r3, r22\n" "add r24, r0\n" "adc r25, r1\n" CARRY_14
      "mulsu r18, r21\n" "sbc r14, r17\n" "sbc r15, r17\n" "add r24, r0\n" "adc r25, r1\n" CARRY_14
      "mul r2, r22\n" "add r24, r1\n" CARRY_25
      "mul r3, r21\n" "add r24, r1\n" CARRY_25
      "mulsu r18, r20\n" "sbc r25, r17\n" "sbc r14, r17\n" "sbc r15, r17\n" "add r24, r1\n" CARRY_25
      "mov r19, r24\n"
      "subi r19, 0x7c\n"
      "cpi r19, 4\n"
      "mov r19, r16\n"
      "brsh 5f\n"
      "rjmp 6b\n"
      "5:\n"
      "lsl r24\n" CARRY_25
      /* Over 2^shift, ties away from zero: the last bit that is shifted out is the half */
      "add r25, r16\n" "adc r14, r16\n" "adc r15, r16\n"
      "ldd r19, Y+13\n"
      "5:\n"
      "asr r15\n" "ror r14\n" "ror r25\n"
      "dec r19\n"
      "brne 5b\n" CARRY_25
      "ld r18, X+\n"
      "ld r19, X\n" SIGN("r19", "r16")
      "add r18, r25\n" "adc r19, r14\n" "adc r16, r15\n" SIGN("r19", "r25")
      "cp r25, r16\n"
      "brne 8f\n"
      "7:\n"
      "st X, r19\n"
      "st -X, r18\n"
      "adiw r26, 2\n" UPPER
      "ret\n"
      /* Saturated */
      "8:\n"
      "ldi r18, 0xff\n"
      "ldi r19, 0x7f\n"
      "sbrs r16, 7\n"
      "rjmp 7b\n"
      "com r18\n"
      "com r19\n"
      "rjmp 7b\n"
      "9:\n"
      "clr __zero_reg__\n"
      "pop r29\n"
      "pop r28\n"
      : "+z"(of)
      :
      : "r0", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "r16", "r17", "r18",
        "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "memory");
#undef ONE
#undef ROW
#undef LEFT
#undef SIGN
#undef UPPER
#undef CARRY_24
#undef CARRY_14
#undef CARRY_25
}

/* The same of one group of rows, of any depth. */
static __attribute__((noinline, unused)) void tinyet_gate_long_rows(tinyet_gate_run *of, tinyet_extent depth) {
  for (uint8_t i = 0; i < 4u; i++) {
    const TINYET_ROM int8_t *w = of->w + 4u * i;
    int32_t sum = *of->bias++;
    for (tinyet_extent k = 0; k < depth; k++) {
      sum += (int16_t)(of->x[k] * *w);
      w += (k & 3) == 3 ? 13 : 1;
    }
    of->sums[i] = sum;
  }
  of->w += ((depth + 3) & ~3) * 4;
  of->to += 4;
  of->left--;
  of->near = 15u;
}

/* Adds to sums, [gates][units], what a row of the part's inputs comes to in Q3.12, saturated. units: rounded up to fours. What is
 * read behind the last input is multiplied by weights that are zero. */
static __attribute__((noinline, unused)) void tinyet_gate_sums(const int8_t *input, const tinyet_gate_part_s8 *part,
                                                               int32_t gates, int32_t units, int16_t *sums) {
  const tinyet_extent depth = TINYET_EXTENT(part->depth), blocks = (depth + 3) >> 2;
  tinyet_gate_run of = {input, part->weights, part->bias, sums, 0u, (uint8_t)blocks, 0u, 0u, 0u, 0, {0, 0, 0, 0},
                        {0u, 0u, 0u}, 0u, 0u};
  for (uint8_t gate = 0; gate < (uint8_t)gates; gate++) {
    const int32_t multiplier = part->multiplier[gate], form = part->form[gate];
    of.factor = (uint32_t)multiplier << 1;
    of.shift = (uint8_t)(form + 1);
    of.general = form < 0 || multiplier > INT32_MAX - 127;
    if (form >= 0) {
      const uint32_t upper = of.factor >> 8 >> of.shift;
      const uint8_t half = of.shift < 8u ? (uint8_t)(128u >> of.shift) : 0u;
      of.upper[0] = (uint8_t)upper, of.upper[1] = (uint8_t)(upper >> 8), of.upper[2] = (uint8_t)(upper >> 16);
      of.above = (uint8_t)(128u + half);
      of.below = (uint8_t)(127u - half);
    }
    of.left = TINYET_EXTENT(units) >> 2;
    while (of.left > 0) {
      if (blocks <= TINYET_DOT_BLOCKS) {
        tinyet_gate_rows(&of);
      } else {
        tinyet_gate_long_rows(&of, depth);
      }
      int16_t *to = of.to - 4;
      for (const int32_t *from = of.sums; of.near != 0u; from++, to++, of.near = (uint8_t)(of.near >> 1)) {
        if ((of.near & 1u) != 0u) {
          const int32_t added = form >= 0 ? tinyet_gate_requantize(*from, multiplier, form)
                                          : tinyet_requantize_any(*from, multiplier, form + 31);
          const int32_t sum = *to + added;
          *to = sum > INT16_MAX ? INT16_MAX : sum < INT16_MIN ? INT16_MIN : (int16_t)sum;
        }
      }
    }
  }
}
#endif

#ifdef __cplusplus
}
#endif

#endif
