/* SPDX-License-Identifier: Apache-2.0 */
/* The products of tinyet_conv2d_s8_winograd_f4x4: the sums of four channels of four tiles at all 36 positions, sixteen words a
 * position, channel by channel. inputs: transformed, at each position two words a channel, 2^16 b + a, a not negative; weights:
 * at each position four a channel, in memory that TRANSFORMED names. The file that includes this has defined this, POSITIONS,
 * TILES, CHANNELS, STEP and word. */
#ifndef TINYET_WINOGRAD_PRODUCTS_BODY_H
#define TINYET_WINOGRAD_PRODUCTS_BODY_H

#include "tinyet_conv2d.h"

#if defined(__riscv) && __riscv_xlen == 32 && defined(__riscv_mul) && !defined(__riscv_32e)
#define TIMES(at, op) "lh t4, " at "(a1)\n" op
#define FOUR_FIRST(at, a, b, c, d) \
  TIMES(at, "mul " a ", t0, t4\n" "mul " b ", t1, t4\n" "mul " c ", t2, t4\n" "mul " d ", t3, t4\n")
#define ADD(sum, x) "mul t5, " x ", t4\n" "add " sum ", " sum ", t5\n"
#define FOUR(at, a, b, c, d) TIMES(at, ADD(a, "t0") ADD(b, "t1") ADD(c, "t2") ADD(d, "t3"))
#define INPUTS(a, b, c, d) "lhu t0, " a "(a0)\n" "lh t1, " b "(a0)\n" "lhu t2, " c "(a0)\n" "lh t3, " d "(a0)\n"
#define FIRST                                                                                \
  INPUTS("0", "2", "4", "6")                                                                 \
  FOUR_FIRST("0", "s0", "s1", "s2", "s3") FOUR_FIRST("2", "s4", "s5", "s6", "s7")            \
  FOUR_FIRST("4", "s8", "s9", "s10", "s11") FOUR_FIRST("6", "a6", "a7", "t6", "ra")
#define NEXT                                                                                 \
  INPUTS("0", "2", "4", "6")                                                                 \
  FOUR("0", "s0", "s1", "s2", "s3") FOUR("2", "s4", "s5", "s6", "s7")                        \
  FOUR("4", "s8", "s9", "s10", "s11") FOUR("6", "a6", "a7", "t6", "ra")
#define NEXT_BUT_ONE                                                                         \
  INPUTS("8", "10", "12", "14")                                                              \
  FOUR("8", "s0", "s1", "s2", "s3") FOUR("10", "s4", "s5", "s6", "s7")                       \
  FOUR("12", "s8", "s9", "s10", "s11") FOUR("14", "a6", "a7", "t6", "ra")
/* The sums of four channels of four tiles at all positions, in s0 ... s11, a6, a7, t6, ra; inputs at a0, weights at a1,
 * sums at a2, bytes of a position's inputs in a3, where they end in a4, and where all end in a5. */
__attribute__((naked, noinline)) static void products(const word *inputs __attribute__((unused)),
                                                      const int16_t *weights __attribute__((unused)),
                                                      uint32_t *sums __attribute__((unused)),
                                                      int32_t in_c __attribute__((unused))) {
  __asm__ volatile(
      "addi sp, sp, -64\n"
      "sw ra, 12(sp)\n"
      "sw s0, 16(sp)\n" "sw s1, 20(sp)\n" "sw s2, 24(sp)\n" "sw s3, 28(sp)\n" "sw s4, 32(sp)\n" "sw s5, 36(sp)\n"
      "sw s6, 40(sp)\n" "sw s7, 44(sp)\n" "sw s8, 48(sp)\n" "sw s9, 52(sp)\n" "sw s10, 56(sp)\n" "sw s11, 60(sp)\n"
      "li a5, 36\n"
      "slli a3, a3, 3\n"
      "mul a5, a5, a3\n"
      "add a5, a5, a0\n"
      "1:\n"
      "add a4, a0, a3\n"
      FIRST
      "addi a0, a0, 8\n"
      "addi a1, a1, 8\n"
      "andi t5, a3, 8\n"
      "bnez t5, 3f\n"
      NEXT
      "addi a0, a0, 8\n"
      "addi a1, a1, 8\n"
      "3:\n"
      "beq a0, a4, 4f\n"
      "2:\n"
      NEXT NEXT_BUT_ONE
      "addi a0, a0, 16\n"
      "addi a1, a1, 16\n"
      "bne a0, a4, 2b\n"
      "4:\n"
      "sw s0, 0(a2)\n" "sw s1, 4(a2)\n" "sw s2, 8(a2)\n" "sw s3, 12(a2)\n" "sw s4, 16(a2)\n" "sw s5, 20(a2)\n"
      "sw s6, 24(a2)\n" "sw s7, 28(a2)\n" "sw s8, 32(a2)\n" "sw s9, 36(a2)\n" "sw s10, 40(a2)\n" "sw s11, 44(a2)\n"
      "sw a6, 48(a2)\n" "sw a7, 52(a2)\n" "sw t6, 56(a2)\n" "sw ra, 60(a2)\n"
      "addi a2, a2, 64\n"
      "bne a0, a5, 1b\n"
      "lw ra, 12(sp)\n"
      "lw s0, 16(sp)\n" "lw s1, 20(sp)\n" "lw s2, 24(sp)\n" "lw s3, 28(sp)\n" "lw s4, 32(sp)\n" "lw s5, 36(sp)\n"
      "lw s6, 40(sp)\n" "lw s7, 44(sp)\n" "lw s8, 48(sp)\n" "lw s9, 52(sp)\n" "lw s10, 56(sp)\n" "lw s11, 60(sp)\n"
      "addi sp, sp, 64\n"
      "ret\n");
}
#undef TIMES
#undef FOUR_FIRST
#undef ADD
#undef FOUR
#undef INPUTS
#undef FIRST
#undef NEXT
#undef NEXT_BUT_ONE
#elif defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2 && defined(__thumb__)
/* One input channel: two weights, and the words of its four inputs, 2^16 b + a, of which the upper halves are taken out once the
 * words themselves are multiplied: their sum is a's and 2^16 times b's. */
#define TIMES(at, next, op)                  \
  "ldrsh r3, [r1, #" at "]\n"                \
  "ldrsh r4, [r1, #" next "]\n"              \
  "ldrd r5, r2, [r0, #" at "]\n"             \
  op("r6", "r5", "r3") op("r10", "r5", "r4") \
  op("r8", "r2", "r3") op("r12", "r2", "r4") \
  "asrs r5, r5, #16\n"                       \
  "asrs r2, r2, #16\n"                       \
  op("r7", "r5", "r3") op("r11", "r5", "r4") \
  op("r9", "r2", "r3") op("lr", "r2", "r4")
#define MUL(sum, x, w) "mul " sum ", " x ", " w "\n"
#define MLA(sum, x, w) "mla " sum ", " x ", " w ", " sum "\n"
/* The sums of four channels of four tiles at all positions, two channels at a time, in r6 ... r12 and lr; inputs at r0,
 * weights at r1. On the stack: bytes of a position's inputs, and of those that are no four channels; sums; twice the
 * positions that are left; where a position's inputs end, and those that are no four channels. */
__attribute__((naked, noinline)) static void products(const word *inputs __attribute__((unused)),
                                                      const int16_t *weights __attribute__((unused)),
                                                      uint32_t *sums __attribute__((unused)),
                                                      int32_t in_c __attribute__((unused))) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
      "sub sp, sp, #28\n"
      "and r4, r3, #3\n"
      "lsls r3, r3, #3\n"
      "lsls r4, r4, #3\n"
      "movs r5, #72\n"
      "str r3, [sp]\n"
      "str r4, [sp, #4]\n"
      "str r2, [sp, #8]\n"
      "str r5, [sp, #12]\n"
      "1:\n"
      "ldr r2, [sp]\n"
      "ldr r3, [sp, #4]\n"
      "add r2, r2, r0\n"
      "str r2, [sp, #16]\n"
      "add r2, r3, r0\n"
      "str r2, [sp, #20]\n"
      TIMES("0", "2", MUL)
      "ldr r3, [sp, #20]\n"
      "cmp r0, r3\n"
      "beq 4f\n" /* the first of four */
      "2:\n"
      "adds r0, r0, #8\n"
      "adds r1, r1, #8\n"
      "cmp r0, r3\n"
      "beq 3f\n"
      TIMES("0", "2", MLA)
      "ldr r3, [sp, #20]\n"
      "b 2b\n"
      "3:\n"
      "ldr r3, [sp, #16]\n"
      "cmp r0, r3\n"
      "beq 6f\n"
      "5:\n"
      TIMES("0", "2", MLA)
      "4:\n"
      TIMES("8", "10", MLA)
      TIMES("16", "18", MLA)
      TIMES("24", "26", MLA)
      "ldr r3, [sp, #16]\n"
      "adds r0, r0, #32\n"
      "adds r1, r1, #32\n"
      "cmp r0, r3\n"
      "bne 5b\n"
      "6:\n"
      "sub r6, r6, r7, lsl #16\n"
      "sub r8, r8, r9, lsl #16\n"
      "sub r10, r10, r11, lsl #16\n"
      "sub r12, r12, lr, lsl #16\n"
      "ldr r3, [sp, #8]\n"
      "ldr r4, [sp, #12]\n"
      "stm r3!, {r6, r7, r8, r9, r10, r11, r12, lr}\n"
      "subs r4, r4, #1\n"
      "str r3, [sp, #8]\n"
      "str r4, [sp, #12]\n"
      "beq 8f\n"
      "lsls r4, r4, #31\n"
      "beq 7f\n"
      "ldr r3, [sp]\n" /* the other two channels of the same inputs */
      "subs r0, r0, r3\n"
      "subs r1, r1, r3\n"
      "adds r1, r1, #4\n"
      "b 1b\n"
      "7:\n"
      "subs r1, r1, #4\n"
      "b 1b\n"
      "8:\n"
      "add sp, sp, #28\n"
      "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
}
#undef TIMES
#undef MUL
#undef MLA
#elif defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
/* One input channel of four tiles by a weight. Inputs are words 2^16 b + a: b is their upper half, and 2^16 times its sum is
 * taken away from theirs in the end. */
#define TIMES(op)                             \
  "ldrsh r2, [r0, r1]\n"                      \
  "ldmia r0!, {r3, r4}\n"                     \
  "asrs r5, r3, #16\n"                        \
  "asrs r6, r4, #16\n"                        \
  "muls r3, r2, r3\n" op " r8, r3\n"          \
  "muls r5, r2, r5\n" op " r9, r5\n"          \
  "muls r4, r2, r4\n" op " r10, r4\n"         \
  "muls r6, r2, r6\n" op " r11, r6\n"
/* The sums of four channels of four tiles at all positions, a channel at a time, in r8 ... r11; inputs at r0, where a position's
 * end in lr, weights r1 bytes from there, sums at r7. On the stack: bytes of a position's inputs; where all end, and their bytes;
 * channels that are left; bytes of the straight code that a position does not execute at first. */
__attribute__((naked, noinline)) static void products(const word *inputs __attribute__((unused)),
                                                      const int16_t *weights __attribute__((unused)),
                                                      uint32_t *sums __attribute__((unused)),
                                                      int32_t in_c __attribute__((unused))) {
  __asm__ volatile(
      TINYET_THUMB1_ENTRY("")
      "sub sp, sp, #20\n"
      "mov r7, r2\n"
      "subs r1, r1, r0\n"
      "mov lr, r0\n"
      "subs r4, r3, #1\n" /* the first channel has code of its own */
      "movs r5, #7\n"
      "ands r4, r4, r5\n"
      "movs r5, #8\n"
      "subs r5, r5, r4\n"
      "movs r4, #24\n"
      "muls r5, r4, r5\n"
      "str r5, [sp, #16]\n"
      "lsls r3, r3, #3\n"
      "movs r5, #36\n"
      "muls r5, r3, r5\n"
      "adds r4, r0, r5\n"
      "movs r6, #4\n"
      "mov r2, sp\n"
      "stmia r2!, {r3, r4, r5, r6}\n"
      "1:\n"
      "ldr r2, [sp]\n"
      "add lr, r2\n"
      TIMES("mov")
      "ldr r6, [sp, #16]\n"
      "add pc, r6\n"
      "nop\n" /* the program counter is two instructions ahead */
      "2:\n"
      TIMES("add") TIMES("add") TIMES("add") TIMES("add") TIMES("add") TIMES("add") TIMES("add") TIMES("add")
      "cmp r0, lr\n"
      "bne 2b\n"
      "mov r3, r8\n"
      "mov r4, r9\n"
      "mov r5, r10\n"
      "mov r6, r11\n"
      "lsls r2, r4, #16\n"
      "subs r3, r3, r2\n"
      "lsls r2, r6, #16\n"
      "subs r5, r5, r2\n"
      "stmia r7!, {r3, r4, r5, r6}\n"
      "adds r7, r7, #48\n"
      "ldr r2, [sp, #4]\n"
      "cmp r0, r2\n"
      "beq 3f\n"
      "b 1b\n"
      "3:\n"
      "ldr r2, [sp, #8]\n" /* the next channel of the same inputs */
      "subs r0, r0, r2\n"
      "mov lr, r0\n"
      "adds r1, r1, #2\n"
      "movs r2, #143\n"
      "lsls r2, r2, #4\n"
      "subs r7, r7, r2\n"
      "ldr r2, [sp, #12]\n"
      "subs r2, r2, #1\n"
      "str r2, [sp, #12]\n"
      "beq 4f\n"
      "b 1b\n"
      "4:\n"
      "add sp, sp, #20\n"
      TINYET_THUMB1_RETURN(""));
}
#undef TIMES
#elif defined(__XTENSA__) && defined(__XTENSA_EL__)
/* In assembly of its own, for GCC has no functions without a frame on Xtensa; the same for both of its calling conventions, of
 * which one has register windows. */
void tinyet_winograd_f4x4_xtensa(const word *inputs, const int16_t *weights, uint32_t *sums,
                                 int32_t in_c) __asm__("tinyet_winograd_f4x4_xtensa");

#ifdef __XTENSA_WINDOWED_ABI__
#define ENTER "entry a1, 80\n"
#define LEAVE "retw\n"
#else
#define ENTER                \
  "addi a1, a1, -48\n"       \
  "s32i a12, a1, 32\n"       \
  "s32i a13, a1, 36\n"       \
  "s32i a14, a1, 40\n"       \
  "s32i a15, a1, 44\n"
#define LEAVE                \
  "l32i a12, a1, 32\n"       \
  "l32i a13, a1, 36\n"       \
  "l32i a14, a1, 40\n"       \
  "l32i a15, a1, 44\n"       \
  "addi a1, a1, 48\n"        \
  "ret\n"
#endif

#define WEIGHTS(at) "l16si a13, a3, " #at "\n" "l16si a14, a3, " #at "+2\n"
#define FIRST_TILE(load, at, one, other)      \
  load " a15, a2, " #at "\n"                  \
  "mull " one ", a15, a13\n"                  \
  "mull " other ", a15, a14\n"
#define TILE_OF(load, at, one, other)         \
  load " a15, a2, " #at "\n"                  \
  "mull a4, a15, a13\n"                       \
  "mull a15, a15, a14\n"                      \
  "add " one ", " one ", a4\n"                \
  "add " other ", " other ", a15\n"
#define FOUR(op, at)                                                     \
  WEIGHTS(at) op("l16ui", at, "a5", "a9") op("l16si", at+2, "a6", "a10") \
  op("l16ui", at+4, "a7", "a11") op("l16si", at+6, "a8", "a12")
/* The sums of four channels of four tiles at all positions, two channels at a time, in a5 ... a12; inputs at a2, weights at a3.
 * On the stack: bytes of a position's inputs, and of those that are no eight channels; sums; bytes of all inputs, and where they
 * end; pairs of channels that are left; where a position's inputs end, and those that are no eight channels. */
__asm__(
    ".section .text.tinyet_winograd_f4x4_xtensa, \"ax\"\n"
    ".align 4\n"
    ".global tinyet_winograd_f4x4_xtensa\n"
    ".type tinyet_winograd_f4x4_xtensa, @function\n"
    "tinyet_winograd_f4x4_xtensa:\n" ENTER
    "slli a5, a5, 3\n"
    "s32i a5, a1, 0\n"
    "extui a6, a5, 0, 6\n"
    "s32i a6, a1, 4\n"
    "s32i a4, a1, 8\n"
    "addx8 a6, a5, a5\n"
    "slli a6, a6, 2\n"
    "s32i a6, a1, 12\n"
    "add a6, a6, a2\n"
    "s32i a6, a1, 16\n"
    "movi a6, 2\n"
    "s32i a6, a1, 20\n"
    "1:\n"
    "l32i a4, a1, 0\n"
    "l32i a5, a1, 4\n"
    "add a4, a4, a2\n"
    "add a5, a5, a2\n"
    "s32i a4, a1, 24\n"
    "s32i a5, a1, 28\n"
    FOUR(FIRST_TILE, 0)
    "l32i a4, a1, 4\n"
    "bnez a4, 2f\n"
    "j 4f\n" /* the first of eight */
    "2:\n"
    "l32i a4, a1, 28\n"
    "addi a2, a2, 8\n"
    "addi a3, a3, 8\n"
    "beq a2, a4, 3f\n"
    FOUR(TILE_OF, 0)
    "j 2b\n"
    "3:\n"
    "l32i a4, a1, 24\n"
    "bne a2, a4, 5f\n"
    "j 6f\n"
    "5:\n"
    FOUR(TILE_OF, 0)
    "4:\n"
    FOUR(TILE_OF, 8) FOUR(TILE_OF, 16) FOUR(TILE_OF, 24) FOUR(TILE_OF, 32) FOUR(TILE_OF, 40) FOUR(TILE_OF, 48)
    FOUR(TILE_OF, 56)
    "l32i a4, a1, 24\n"
    "addi a2, a2, 64\n"
    "addi a3, a3, 64\n"
    "sub a4, a4, a2\n"
    "bnez a4, 5b\n"
    "6:\n"
    "l32i a4, a1, 8\n"
    "l32i a13, a1, 16\n"
    "s32i a5, a4, 0\n" "s32i a6, a4, 4\n" "s32i a7, a4, 8\n" "s32i a8, a4, 12\n"
    "s32i a9, a4, 16\n" "s32i a10, a4, 20\n" "s32i a11, a4, 24\n" "s32i a12, a4, 28\n"
    "addi a4, a4, 64\n"
    "s32i a4, a1, 8\n"
    "beq a2, a13, 7f\n"
    "j 1b\n"
    "7:\n"
    "l32i a13, a1, 20\n"
    "l32i a14, a1, 12\n"
    "addi a13, a13, -1\n"
    "beqz a13, 8f\n"
    "s32i a13, a1, 20\n"
    "sub a2, a2, a14\n" /* the other two channels of the same inputs */
    "sub a3, a3, a14\n"
    "addi a3, a3, 4\n"
    "addmi a4, a4, -2304\n"
    "addi a4, a4, 32\n"
    "s32i a4, a1, 8\n"
    "j 1b\n"
    "8:\n" LEAVE
    ".size tinyet_winograd_f4x4_xtensa, . - tinyet_winograd_f4x4_xtensa\n"
    ".text\n");
#undef ENTER
#undef LEAVE
#undef WEIGHTS
#undef FIRST_TILE
#undef TILE_OF
#undef FOUR

static inline void products(const word *inputs, const int16_t *weights, uint32_t *sums, int32_t in_c) {
  tinyet_winograd_f4x4_xtensa(inputs, weights, sums, in_c);
}
#else
/* The sums of four channels of four tiles at all positions. By itself all that its loop needs stays in registers. */
static __attribute__((noinline)) void products(const word *inputs, const TRANSFORMED int16_t *weights, uint32_t *sums,
                                               int32_t in_c) {
  const word *x = inputs;
  for (int32_t position = POSITIONS; position > 0; position--) {
    for (int32_t channel = 0; channel < CHANNELS; channel++, sums += TILES) {
      const word *at = x;
      const TRANSFORMED int16_t *w = weights + channel;
      uint32_t a = 0, b = 0, c = 0, d = 0;
      for (int32_t i = in_c; i > 0; i--) {
        const uint32_t weight = (uint32_t)*w;
        a += (at[0] & 0xffffu) * weight;
        b += (uint32_t)((int32_t)at[0] >> 16) * weight;
        c += (at[1] & 0xffffu) * weight;
        d += (uint32_t)((int32_t)at[1] >> 16) * weight;
        at += STEP;
        w += CHANNELS;
      }
      sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
    }
    x += STEP * in_c;
    weights += CHANNELS * in_c;
  }
}
#endif

#endif
