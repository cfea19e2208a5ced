/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_depthwise_planes.h"
#include "tinyet_one_product.h"
#include "tinyet_plane_copies_body.h"

#if defined(__riscv) && __riscv_xlen == 32 && defined(__riscv_mul) && !defined(__riscv_32e)
/* Outputs column by column, or two columns side by side: what a row of inputs adds to the outputs of up to three rows is added
 * while it is in registers. */
typedef struct {
  const int32_t *stream;
  const int8_t *weights;
  int32_t words;    /* of the stream, a channel */
  int32_t twos;     /* columns that are computed two at a time, in twos */
  int32_t ones;     /* and one at a time */
  int32_t columns;  /* bytes from row to row of the plane */
  int32_t channels; /* bytes from output to output */
  int32_t row;      /* bytes from row to row of outputs */
  int32_t all;      /* bytes of all rows of outputs */
  int32_t step;     /* bytes from window to window of a row */
  int32_t stride;   /* stride_h */
} plane_walk;

/* sum = before + x * w, the input in t0. */
#define PRODUCT(sum, before, w) "mul t1, t0, " w "\n" "add " sum ", " before ", t1\n"
#define INPUT(i) "lb t0, 4*" #i "(a0)\n" /* planes have four channels */
#define DOWN "add a0, a0, a2\n"
/* What the next input of a row adds to the outputs of two neighbouring columns, or of one: of those whose last row of inputs
 * it is (LAST), whose middle one (MIDDLE), whose first one (FIRST), by weight. The first input of a window takes the sums one
 * row further. */
#define LAST_0(f, b) PRODUCT(f, b, "s6")
#define LAST_1(f) PRODUCT(f, f, "s7")
#define LAST_2(f) PRODUCT(f, f, "s8")
#define MIDDLE_0(b, a) PRODUCT(b, a, "s3")
#define MIDDLE_1(b) PRODUCT(b, b, "s4")
#define MIDDLE_2(b) PRODUCT(b, b, "s5")
#define FIRST_0(a) PRODUCT(a, "s9", "s0")
#define FIRST_1(a) PRODUCT(a, a, "s1")
#define FIRST_2(a) PRODUCT(a, a, "s2")
#define NOTHING_0(x, y)
#define NOTHING_1(x)
#define NOTHING_2(x)
#define FIRSTS_0(x, y) FIRST_0(x)
#define FIRSTS_1(x) FIRST_1(x)
#define FIRSTS_2(x) FIRST_2(x)
#define AT_0(l, m, n, f, b, a) l##_0(f, b) m##_0(b, a) n##_0(a, a)
#define AT_1(l, m, n, f, b, a) l##_1(f) m##_1(b) n##_1(a)
#define AT_2(l, m, n, f, b, a) l##_2(f) m##_2(b) n##_2(a)
#define ROW_OF_ONE(l, m, n)                      \
  INPUT(0) AT_0(l, m, n, "t4", "t2", "a6")       \
  INPUT(1) AT_1(l, m, n, "t4", "t2", "a6")       \
  INPUT(2) AT_2(l, m, n, "t4", "t2", "a6") DOWN
#define ROW_OF_TWO(l, m, n)                                                      \
  INPUT(0) AT_0(l, m, n, "t4", "t2", "a6")                                       \
  INPUT(1) AT_1(l, m, n, "t4", "t2", "a6") AT_0(l, m, n, "ra", "t3", "a7")       \
  INPUT(2) AT_2(l, m, n, "t4", "t2", "a6") AT_1(l, m, n, "ra", "t3", "a7")       \
  INPUT(3) AT_2(l, m, n, "ra", "t3", "a7") DOWN
/* The same two inputs apart. */
#define ROW_OF_TWO_APART(l, m, n)                                                \
  INPUT(0) AT_0(l, m, n, "t4", "t2", "a6")                                       \
  INPUT(1) AT_1(l, m, n, "t4", "t2", "a6")                                       \
  INPUT(2) AT_2(l, m, n, "t4", "t2", "a6") AT_0(l, m, n, "ra", "t3", "a7")       \
  INPUT(3) AT_1(l, m, n, "ra", "t3", "a7")                                       \
  INPUT(4) AT_2(l, m, n, "ra", "t3", "a7") DOWN
/* n names labels: what is beyond a bound is stored by BEYOND, behind the function's end. */
#define CLAMPED(n, sum)                   \
  "srai " sum ", " sum ", 12\n"           \
  "blt " sum ", t6, 1" #n "f\n"           \
  "blt t5, " sum ", 2" #n "f\n"           \
  "sb " sum ", 0(a1)\n"                   \
  "3" #n ":\n"
#define BEYOND(n)                              \
  "1" #n ":\n" "sb t6, 0(a1)\n" "j 3" #n "b\n" \
  "2" #n ":\n" "sb t5, 0(a1)\n" "j 3" #n "b\n"
#define FOLDED(n, sum) "mulh " sum ", " sum ", s10\n" CLAMPED(n, sum)
#define ANY(n, sum)                                                                           \
  "mulh " sum ", " sum ", s10\n"                                                              \
  "srai t0, " sum ", 31\n" "lw t1, 64(sp)\n" "and t0, t0, t1\n" "sub " sum ", " sum ", t0\n" \
  "add " sum ", " sum ", s11\n" CLAMPED(n, sum)
#define STORE_ONE(n, ROUND) ROUND(n##0, "t4") "add a1, a1, a4\n"
#define STORE_TWO(n, ROUND) ROUND(n##0, "t4") "add a1, a1, a3\n" ROUND(n##1, "ra") "add a1, a1, a4\n"
/* A column, or two: rows of inputs one by one, of which the last row of outputs takes no more than it needs, or two for each
 * row of outputs. */
#define ALONG(n, ROW, STORE, ROUND)                       \
  ROW(NOTHING, NOTHING, FIRSTS)                           \
  ROW(NOTHING, MIDDLE, FIRSTS)                            \
  "beq a1, a5, 5" #n "f\n"                                \
  "2:\n" ROW(LAST, MIDDLE, FIRSTS) STORE(n, ROUND)        \
  "bne a1, a5, 2b\n"                                      \
  "5" #n ":\n" ROW(LAST, NOTHING, NOTHING) STORE(9##n, ROUND)
#define BY_TWOS(n, ROW, STORE, ROUND)                     \
  ROW(NOTHING, NOTHING, FIRSTS)                           \
  "2:\n" ROW(NOTHING, MIDDLE, NOTHING)                    \
  ROW(LAST, NOTHING, FIRSTS) STORE(n, ROUND)              \
  "bne a1, a5, 2b\n"
/* Rows of outputs that share none of inputs, t3 the way from the last row of a window to the next window. */
#define APART(n, ROW, STORE, ROUND)                       \
  "lw t3, 68(sp)\n"                                       \
  "2:\n" ROW(NOTHING, NOTHING, FIRSTS)                    \
  ROW(NOTHING, MIDDLE, NOTHING)                           \
  ROW(LAST, NOTHING, NOTHING) STORE(n, ROUND)             \
  "add a0, a0, t3\n"                                      \
  "bne a1, a5, 2b\n"
/* Where outputs of a column end that a loop makes, behind the first: all, or all but the last one. */
#define ALL "72"
#define BUT_ONE "112"
/* So many times, as the walk says at `count`; step: bytes from one to the next of the plane and of outputs, at the stack. */
#define COLUMNS(count, inputs, outputs, end, BODY)        \
  "lw t0, " count "(sp)\n"                                \
  "beqz t0, 4f\n"                                         \
  "3:\n"                                                  \
  "sw t0, 56(sp)\n"                                       \
  "lw t1, " end "(sp)\n"                                  \
  "add a5, a1, t1\n"                                      \
  "sw a0, 60(sp)\n"                                       \
  BODY                                                    \
  "lw a0, 60(sp)\n"                                       \
  "lw t0, " inputs "(sp)\n"                               \
  "add a0, a0, t0\n"                                      \
  "lw t1, 72(sp)\n"                                       \
  "sub a1, a1, t1\n"                                      \
  outputs                                                 \
  "lw t0, 56(sp)\n"                                       \
  "addi t0, t0, -1\n"                                     \
  "bnez t0, 3b\n"                                         \
  "4:\n"
#define ONES(end, BODY) COLUMNS("80", "76", "add a1, a1, a3\n", end, BODY)
#define TWOS(end, BODY) \
  "sub a4, a4, a3\n" COLUMNS("84", "88", "slli t0, a3, 1\n" "add a1, a1, t0\n", end, BODY) "add a4, a4, a3\n"

/* From t2, times a power of two in t3. */
#define WEIGHT(i, w) "lb " w ", " #i "(t2)\n" "sll " w ", " w ", t3\n"

/* So many channels of a plane. Weights in s0 ... s8, start, multiplier and offset in s9 ... s11; sums of the rows of outputs
 * that go on in a6 and a7 (begun), t2 and t3, t4 and ra (done). */
__attribute__((naked, noinline)) static void channels_of_plane(const int8_t *plane __attribute__((unused)),
                                                               int8_t *output __attribute__((unused)),
                                                               const plane_walk *walk __attribute__((unused)),
                                                               int32_t count __attribute__((unused))) {
  __asm__ volatile(
      "addi sp, sp, -128\n"
      "sw ra, 4(sp)\n"
      "sw s0, 8(sp)\n" "sw s1, 12(sp)\n" "sw s2, 16(sp)\n" "sw s3, 20(sp)\n" "sw s4, 24(sp)\n" "sw s5, 28(sp)\n"
      "sw s6, 32(sp)\n" "sw s7, 36(sp)\n" "sw s8, 40(sp)\n" "sw s9, 44(sp)\n" "sw s10, 48(sp)\n" "sw s11, 52(sp)\n"
      "sw a3, 104(sp)\n"
      "lw t0, 0(a2)\n" "lw t5, 4(a2)\n" "lw t6, 8(a2)\n" "sw t5, 116(sp)\n" "sw t6, 120(sp)\n"
      "lw t2, 12(a2)\n" "lw t3, 16(a2)\n" "lw t4, 20(a2)\n" "lw a3, 24(a2)\n" "lw a4, 28(a2)\n"
      "lw a5, 32(a2)\n" "lw a6, 36(a2)\n" "lw a7, 40(a2)\n"
      "mv a2, t4\n"
      "sw t3, 0(sp)\n" "sw t2, 84(sp)\n" "sw a5, 72(sp)\n" "sw a6, 76(sp)\n"
      "slli t1, a6, 1\n" "sw t1, 88(sp)\n"
      "sub a5, a5, a4\n" "sw a5, 112(sp)\n"
      "addi t1, a7, -3\n" "mul t1, t1, a2\n" "sw t1, 68(sp)\n"
      "addi a7, a7, -1\n" "sw a7, 108(sp)\n"
      "li t5, 127\n" "li t6, -128\n"
      "7:\n"
      "sw a0, 96(sp)\n" "sw a1, 100(sp)\n"
      "lw t2, 116(sp)\n" "lw t1, 120(sp)\n"
      "lw s9, 0(t0)\n" "lw s10, 4(t0)\n"
      "lb t3, 9(t2)\n"
      WEIGHT(0, "s0") WEIGHT(1, "s1") WEIGHT(2, "s2") WEIGHT(3, "s3") WEIGHT(4, "s4")
      WEIGHT(5, "s5") WEIGHT(6, "s6") WEIGHT(7, "s7") WEIGHT(8, "s8")
      "lw t3, 0(sp)\n" "lw a7, 108(sp)\n"
      "addi t2, t2, 10\n" "sw t2, 116(sp)\n"
      "addi t1, t1, -2\n"
      "addi t0, t0, 8\n" "sw t0, 92(sp)\n"
      "bnez t1, 6f\n"
      "17:\n"
      "sw t3, 80(sp)\n"
      "beqz a7, 1f\n"
      "addi a7, a7, -1\n"
      "beqz a7, 5f\n"
      ONES(ALL, APART(1, ROW_OF_ONE, STORE_ONE, FOLDED))
      "j 9f\n"
      "1:\n"
      TWOS(BUT_ONE, ALONG(2, ROW_OF_TWO, STORE_TWO, FOLDED))
      ONES(BUT_ONE, ALONG(3, ROW_OF_ONE, STORE_ONE, FOLDED))
      "j 9f\n"
      "5:\n"
      TWOS(ALL, BY_TWOS(4, ROW_OF_TWO_APART, STORE_TWO, FOLDED))
      ONES(ALL, BY_TWOS(5, ROW_OF_ONE, STORE_ONE, FOLDED))
      "j 9f\n"
      "6:\n"
      "lw s11, 0(t0)\n" "lw t1, 4(t0)\n" "sw t1, 64(sp)\n"
      "addi t0, t0, 8\n" "sw t0, 92(sp)\n"
      "or t1, t1, s11\n"
      "bnez t1, 6f\n"
      "j 17b\n"
      "6:\n" /* seldom: columns one by one */
      "lw t2, 84(sp)\n"
      "slli t2, t2, 1\n"
      "add t3, t3, t2\n"
      "sw t3, 80(sp)\n"
      "beqz a7, 1f\n"
      "addi a7, a7, -1\n"
      "beqz a7, 5f\n"
      ONES(ALL, APART(6, ROW_OF_ONE, STORE_ONE, ANY))
      "j 9f\n"
      "1:\n"
      ONES(BUT_ONE, ALONG(7, ROW_OF_ONE, STORE_ONE, ANY))
      "j 9f\n"
      "5:\n"
      ONES(ALL, BY_TWOS(8, ROW_OF_ONE, STORE_ONE, ANY))
      "9:\n"
      "lw t1, 104(sp)\n" "lw t0, 92(sp)\n" "lw a0, 96(sp)\n" "lw a1, 100(sp)\n"
      "addi t1, t1, -1\n" "sw t1, 104(sp)\n"
      "addi a0, a0, 1\n" "addi a1, a1, 1\n"
      "beqz t1, 8f\n" "j 7b\n" "8:\n"
      "lw ra, 4(sp)\n"
      "lw s0, 8(sp)\n" "lw s1, 12(sp)\n" "lw s2, 16(sp)\n" "lw s3, 20(sp)\n" "lw s4, 24(sp)\n" "lw s5, 28(sp)\n"
      "lw s6, 32(sp)\n" "lw s7, 36(sp)\n" "lw s8, 40(sp)\n" "lw s9, 44(sp)\n" "lw s10, 48(sp)\n" "lw s11, 52(sp)\n"
      "addi sp, sp, 128\n"
      "ret\n"
      BEYOND(10) BEYOND(20) BEYOND(21) BEYOND(920) BEYOND(921) BEYOND(30) BEYOND(930) BEYOND(40) BEYOND(41)
      BEYOND(50) BEYOND(60) BEYOND(70) BEYOND(970) BEYOND(80));
}
#undef PRODUCT
#undef INPUT
#undef DOWN
#undef LAST_0
#undef LAST_1
#undef LAST_2
#undef MIDDLE_0
#undef MIDDLE_1
#undef MIDDLE_2
#undef FIRST_0
#undef FIRST_1
#undef FIRST_2
#undef NOTHING_0
#undef NOTHING_1
#undef NOTHING_2
#undef FIRSTS_0
#undef FIRSTS_1
#undef FIRSTS_2
#undef AT_0
#undef AT_1
#undef AT_2
#undef ROW_OF_ONE
#undef ROW_OF_TWO
#undef ROW_OF_TWO_APART
#undef CLAMPED
#undef BEYOND
#undef FOLDED
#undef ANY
#undef STORE_ONE
#undef STORE_TWO
#undef ALONG
#undef BY_TWOS
#undef APART
#undef WEIGHT
#undef ALL
#undef BUT_ONE
#undef COLUMNS
#undef ONES
#undef TWOS

static void several(const int8_t *plane, int8_t *output, plane_walk *walk, int32_t count) {
  channels_of_plane(plane, output, walk, count);
  walk->stream += walk->words * count;
  walk->weights += 10 * count;
}

static plane_walk walk_of(const tinyet_conv2d_shape *s, const tinyet_depthwise_s8_chw_3x3_2x1_params *of, int32_t step,
                          int32_t line) {
  const int32_t columns = TOGETHER * ((s->out_w - 1) * s->stride_w + 3);
  const int32_t twos = s->stride_w == s->stride_h && s->stride_w <= 2 ? s->out_w / 2 : 0;
  const plane_walk walk = {of->stream, of->weights, of->words, twos, s->out_w - 2 * twos, columns, step, line, s->out_h * line,
                           TOGETHER * s->stride_w, s->stride_h};
  return walk;
}
#else
typedef struct {
  const int32_t *constants; /* of a channel: start, multiplier, offset, away, nine weights */
  int32_t rows;
  int32_t pairs;    /* bytes of a row's outputs that are computed in pairs, behind those in threes */
  int32_t rest;     /* outputs of a row by themselves */
  int32_t columns;  /* bytes from row to row of the plane */
  int32_t step;     /* bytes from output to output */
  int32_t next_two; /* bytes from the last row of a window to the next but one, and to the next */
  int32_t next;
  int32_t turn;     /* bytes from the window behind the last one of a row to the first one of the next */
  int32_t back;     /* the same of outputs */
  int32_t threes;   /* bytes of a row's outputs that are computed in threes */
  int32_t next_three;
  int32_t twos, left; /* pairs and rest without threes */
  const TINYET_ROM int32_t *stream;
  const TINYET_ROM int8_t *weights;
  int32_t words; /* of the stream, a channel */
} plane_walk;

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2 && defined(__thumb__)
#define ADD(sum, w) "mla " sum ", r9, " w ", " sum "\n"
#define ROW_OF_THREE(a, b, c)                                        \
  "ldrsb r9, [r12]\n" ADD("r10", a)                                  \
  "ldrsb r9, [r12, #4*1]\n" ADD("r10", b) ADD("r11", a)                \
  "ldrsb r9, [r12, #4*2]\n" ADD("r10", c) ADD("r11", b) ADD("lr", a)   \
  "ldrsb r9, [r12, #4*3]\n" ADD("r11", c) ADD("lr", b)                 \
  "ldrsb r9, [r12, #4*4]\n" ADD("lr", c)
#define ROW_OF_TWO(a, b, c)                           \
  "ldrsb r9, [r12]\n" ADD("r10", a)                   \
  "ldrsb r9, [r12, #4*1]\n" ADD("r10", b) ADD("r11", a) \
  "ldrsb r9, [r12, #4*2]\n" ADD("r10", c) ADD("r11", b) \
  "ldrsb r9, [r12, #4*3]\n" ADD("r11", c)
#define ROW_OF_ONE(a, b, c)             \
  "ldrsb r9, [r12]\n" ADD("r10", a)     \
  "ldrsb r9, [r12, #4*1]\n" ADD("r10", b) \
  "ldrsb r9, [r12, #4*2]\n" ADD("r10", c)
#define DOWN "ldr r9, [sp, #32]\n" "add r12, r12, r9\n"
#define FOLDED(sum)                    \
  "ldr r9, [sp, #4]\n"                 \
  "smull r9, " sum ", " sum ", r9\n"   \
  "ssat " sum ", #8, " sum ", asr #12\n"
#define ANY(sum)                       \
  "ldr r9, [sp, #4]\n"                 \
  "smull r9, " sum ", " sum ", r9\n"   \
  "ldr r9, [sp, #12]\n" "and r9, r9, " sum ", asr #31\n" "subs " sum ", " sum ", r9\n" \
  "ldr r9, [sp, #8]\n"                 \
  "add " sum ", " sum ", r9\n"         \
  "ssat " sum ", #8, " sum ", asr #12\n"
#define THREES(ROUND)                      \
  "ldr r9, [sp, #56]\n"                    \
  "cmp r9, #0\n"                           \
  "beq 9f\n"                               \
  "add r9, r9, lr\n" /* where threes of this row end */ \
  "strd r9, lr, [sp, #64]\n"               \
  "8:\n"                                   \
  "ldr r10, [sp]\n"                        \
  "mov r11, r10\n"                         \
  "mov lr, r10\n"                          \
  ROW_OF_THREE("r0", "r1", "r2") DOWN      \
  ROW_OF_THREE("r3", "r4", "r5") DOWN      \
  ROW_OF_THREE("r6", "r7", "r8")           \
  ROUND("r10")                             \
  ROUND("r11")                             \
  ROUND("lr")                              \
  "ldr r9, [sp, #68]\n"                    \
  "strb r10, [r9]\n"                       \
  "ldr r10, [sp, #36]\n"                   \
  "strb r11, [r9, r10]\n"                  \
  "strb lr, [r9, r10, lsl #1]\n"           \
  "add r10, r10, r10, lsl #1\n"            \
  "add lr, r9, r10\n"                      \
  "str lr, [sp, #68]\n"                    \
  "ldrd r9, r10, [sp, #60]\n"              \
  "add r12, r12, r9\n"                     \
  "cmp r10, lr\n"                          \
  "bne 8b\n"                               \
  "9:\n"
#define NONE(ROUND)
/* Of a channel; three outputs at a time, which need lr, then two, then what is left of a row. Where products are not all of an
 * output, which is seldom, none are three. */
#define OUTPUTS(THREES, ROUND)             \
  "1:\n"                                   \
  THREES(ROUND)                            \
  "ldr r9, [sp, #24]\n"                    \
  "cmp r9, #0\n"                           \
  "beq 3f\n"                               \
  "add r9, r9, lr\n" /* where pairs of this row end */ \
  "str r9, [sp, #16]\n"                    \
  "2:\n"                                   \
  "ldr r10, [sp]\n"                        \
  "mov r11, r10\n"                         \
  ROW_OF_TWO("r0", "r1", "r2") DOWN        \
  ROW_OF_TWO("r3", "r4", "r5") DOWN        \
  ROW_OF_TWO("r6", "r7", "r8")             \
  ROUND("r10")                             \
  ROUND("r11")                             \
  "ldr r9, [sp, #36]\n"                    \
  "strb r10, [lr]\n"                       \
  "strb r11, [lr, r9]\n"                   \
  "add lr, lr, r9, lsl #1\n"               \
  "ldr r9, [sp, #40]\n"                    \
  "add r12, r12, r9\n"                     \
  "ldr r9, [sp, #16]\n"                    \
  "cmp r9, lr\n"                           \
  "bne 2b\n"                               \
  "3:\n"                                   \
  "ldr r11, [sp, #28]\n"                   \
  "cmp r11, #0\n"                          \
  "beq 5f\n"                               \
  "4:\n"                                   \
  "ldr r10, [sp]\n"                        \
  ROW_OF_ONE("r0", "r1", "r2") DOWN        \
  ROW_OF_ONE("r3", "r4", "r5") DOWN        \
  ROW_OF_ONE("r6", "r7", "r8")             \
  ROUND("r10")                             \
  "strb r10, [lr]\n"                       \
  "ldr r9, [sp, #36]\n"                    \
  "add lr, lr, r9\n"                       \
  "ldr r9, [sp, #44]\n"                    \
  "add r12, r12, r9\n"                     \
  "subs r11, r11, #1\n"                    \
  "bne 4b\n"                               \
  "5:\n"                                   \
  "ldrd r9, r11, [sp, #48]\n"              \
  "add r12, r12, r9\n"                     \
  "add lr, lr, r11\n"                      \
  "ldr r9, [sp, #20]\n"                    \
  "subs r9, r9, #1\n"                      \
  "str r9, [sp, #20]\n"                    \
  "bne 1b\n"

/* Weights in r0 ... r8, an input in r9, two sums in r10 and r11, the window at r12, outputs at lr. On the stack start,
 * multiplier, offset and away, where pairs of a row end, the walk without its stream, where threes of a row end, and the
 * outputs while lr has the third sum. */
__attribute__((naked, noinline)) static void channel(const int8_t *plane __attribute__((unused)),
                                                     int8_t *output __attribute__((unused)),
                                                     const plane_walk *walk __attribute__((unused))) {
  __asm__ volatile(
      "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
      "sub sp, sp, #72\n"
      "mov r12, r0\n"
      "mov lr, r1\n"
      "ldm r2, {r1, r3, r4, r5, r6, r7, r8, r9, r10, r11}\n"
      "add r0, sp, #20\n"
      "stm r0, {r3, r4, r5, r6, r7, r8, r9, r10, r11}\n"
      "ldrd r3, r4, [r2, #40]\n"
      "strd r3, r4, [sp, #56]\n"
      "ldrd r8, r9, [r2, #48]\n"
      "ldm r1!, {r4, r5, r6, r7}\n"
      "stm sp, {r4, r5, r6, r7}\n"
      "orrs r10, r6, r7\n"
      "it ne\n"
      "strdne r8, r9, [sp, #24]\n"
      "ldm r1, {r0, r1, r2, r3, r4, r5, r6, r7, r8}\n"
      "bne 7f\n"
      OUTPUTS(THREES, FOLDED)
      "6:\n"
      "add sp, sp, #72\n"
      "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n"
      "7:\n"
      OUTPUTS(NONE, ANY)
      "b 6b\n");
}
#undef ADD
#undef ROW_OF_THREE
#undef ROW_OF_TWO
#undef ROW_OF_ONE
#undef DOWN
#undef FOLDED
#undef ANY
#undef THREES
#undef NONE
#undef OUTPUTS
#else
#define AT(i) plane[TOGETHER * (i)]
static void channel(const int8_t *plane, int8_t *output, const plane_walk *walk) {
  const int32_t *const w = walk->constants;
  const int32_t columns = walk->columns, step = walk->step, next_two = walk->next_two, next = walk->next;
  const int32_t start = w[0], multiplier = w[1], offset = w[2], away = w[3];
  const int32_t a = w[4], b = w[5], c = w[6], d = w[7], e = w[8], f = w[9], g = w[10], h = w[11], i = w[12];
  for (int32_t y = walk->rows; y > 0; y--) {
    for (const int8_t *end = output + walk->threes; output != end;) {
      int32_t first = start, second = start, third = start;
#define ROW(j, k, l)                                    \
  do {                                                  \
    first += AT(0) * (j) + AT(1) * (k) + AT(2) * (l);   \
    second += AT(1) * (j) + AT(2) * (k) + AT(3) * (l);  \
    third += AT(2) * (j) + AT(3) * (k) + AT(4) * (l);   \
  } while (0)
      ROW(a, b, c);
      plane += columns;
      ROW(d, e, f);
      plane += columns;
      ROW(g, h, i);
#undef ROW
      output[0] = (int8_t)tinyet_one_product(first, multiplier, offset, away, 12u);
      output[step] = (int8_t)tinyet_one_product(second, multiplier, offset, away, 12u);
      output[2 * step] = (int8_t)tinyet_one_product(third, multiplier, offset, away, 12u);
      output += 3 * step;
      plane += walk->next_three;
    }
    for (const int8_t *end = output + walk->pairs; output != end;) {
      int32_t first = start, second = start;
#define ROW(j, k, l)                                      \
  do {                                                  \
    const int32_t x = AT(0), u = AT(1), v = AT(2), z = AT(3); \
    first += x * (j) + u * (k) + v * (l);               \
    second += u * (j) + v * (k) + z * (l);              \
  } while (0)
      ROW(a, b, c);
      plane += columns;
      ROW(d, e, f);
      plane += columns;
      ROW(g, h, i);
#undef ROW
      output[0] = (int8_t)tinyet_one_product(first, multiplier, offset, away, 12u);
      output[step] = (int8_t)tinyet_one_product(second, multiplier, offset, away, 12u);
      output += 2 * step;
      plane += next_two;
    }
    for (int32_t x = walk->rest; x > 0; x--) {
      int32_t sum = start + AT(0) * a + AT(1) * b + AT(2) * c;
      plane += columns;
      sum += AT(0) * d + AT(1) * e + AT(2) * f;
      plane += columns;
      sum += AT(0) * g + AT(1) * h + AT(2) * i;
      *output = (int8_t)tinyet_one_product(sum, multiplier, offset, away, 12u);
      output += step;
      plane += next;
    }
    plane += walk->turn;
    output += walk->back;
  }
}
#undef AT
#endif

static void several(const int8_t *plane, int8_t *output, plane_walk *walk, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    const TINYET_ROM int8_t *const w = walk->weights;
    const int32_t factor = INT32_C(1) << w[9];
    const int32_t offset = walk->words > 2 ? walk->stream[2] : 0, away = walk->words > 2 ? walk->stream[3] : 0;
    const int32_t constants[] = {walk->stream[0], walk->stream[1], offset,        away,          w[0] * factor,
                                 w[1] * factor,   w[2] * factor,   w[3] * factor, w[4] * factor, w[5] * factor,
                                 w[6] * factor,   w[7] * factor,   w[8] * factor};
    walk->constants = constants;
    channel(plane + i, output + i, walk);
    walk->stream += walk->words;
    walk->weights += 10;
  }
}

static plane_walk walk_of(const tinyet_conv2d_shape *s, const tinyet_depthwise_s8_chw_3x3_2x1_params *of, int32_t step,
                          int32_t line) {
  const int32_t columns = TOGETHER * ((s->out_w - 1) * s->stride_w + 3), window = TOGETHER * s->stride_w;
  const int32_t neighbours = s->stride_w == 1 && s->out_w > 1;
  const int32_t pairs = neighbours ? (3 - s->out_w % 3) % 3 : 0;
  const int32_t threes = neighbours ? (s->out_w - 2 * pairs) / 3 : 0;
  const plane_walk walk = {NULL,
                           s->out_h,
                           2 * pairs * step,
                           s->out_w - 3 * threes - 2 * pairs,
                           columns,
                           step,
                           2 * window - 2 * columns,
                           window - 2 * columns,
                           s->stride_h * columns - s->out_w * window,
                           line - s->out_w * step,
                           3 * threes * step,
                           3 * window - 2 * columns,
                           neighbours ? s->out_w / 2 * 2 * step : 0,
                           neighbours ? s->out_w & 1 : s->out_w,
                           of->stream,
                           of->weights,
                           of->words};
  return walk;
}
#endif

static inline void swap(int32_t *a, int32_t *b) {
  const int32_t was = *a;
  *a = *b;
  *b = was;
}

/* transposed: planes and what is computed of them go down the image, column after column; weights are in that order. */
static __attribute__((noinline)) void depthwise_layer(const int8_t *input, int8_t *output, void *scratch,
                                                      const tinyet_depthwise_s8_chw_3x3_2x1_params *params,
                                                      int32_t transposed) {
  tinyet_conv2d_shape s = params->shape;
  const int32_t channels = s.in_c, count = s.out_h * s.out_w * channels, size_in = s.in_h * s.in_w * channels;
  /* Bytes from pixel to pixel of a line, and from line to line. */
  int32_t in_step = channels, in_line = s.in_w * channels, step = channels, line = s.out_w * channels;
  if (transposed != 0) {
    swap(&s.in_h, &s.in_w);
    swap(&s.out_h, &s.out_w);
    swap(&s.stride_h, &s.stride_w);
    swap(&s.pad_top, &s.pad_left);
    swap(&in_step, &in_line);
    swap(&step, &line);
  }
  const int32_t rows = (s.out_h - 1) * s.stride_h + 3, columns = (s.out_w - 1) * s.stride_w + 3, size = rows * columns;
  const int32_t right = columns - s.pad_left, bottom = rows - s.pad_top;
  const inside part = {seen(s.in_h, bottom), seen(s.in_w, right), columns, in_line, in_step};
  const int32_t words = by_words(input, channels);
  int8_t *const planes = (int8_t *)scratch, *const first = planes + TOGETHER * (s.pad_top * columns + s.pad_left);
  memset(planes, (int)params->padding, (size_t)(TOGETHER * size));
  for (int32_t n = 0; n < s.batch; n++) {
    plane_walk walk = walk_of(&s, params, step, line);
    for (int32_t c = 0; c < channels; c += TOGETHER) {
      const int32_t together = channels - c < TOGETHER ? channels - c : (int32_t)TOGETHER;
      copy_together(first, input + c, together, words, &part);
      several(planes, output + c, &walk, together);
    }
    tinyet_clamp_outputs(output, count, params->clamp_low, params->clamp_high);
    input += size_in;
    output += count;
  }
}

void tinyet_depthwise_s8_chw_3x3_2x1(const int8_t *input, int8_t *output, void *scratch,
                                     const tinyet_depthwise_s8_chw_3x3_2x1_params *params) {
  depthwise_layer(input, output, scratch, params, 0);
}

void tinyet_depthwise_s8_cwh_3x3_2x1(const int8_t *input, int8_t *output, void *scratch,
                                     const tinyet_depthwise_s8_cwh_3x3_2x1_params *params) {
  depthwise_layer(input, output, scratch, params, 1);
}
