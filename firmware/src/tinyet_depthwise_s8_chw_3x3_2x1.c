/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_depthwise_planes.h"
#include "tinyet_one_product.h"

/* The part of a plane that lies in the image, and how the image goes on. */
typedef struct {
  int32_t rows, width;
  int32_t columns;  /* bytes from row to row of the plane */
  int32_t in_row;   /* bytes from row to row of the image */
  int32_t channels; /* bytes from pixel to pixel of the image */
} inside;

static void copy(int8_t *plane, const int8_t *image, const inside *part) {
  const int32_t channels = part->channels, width = part->width, fours = width / 4, rest = width & 3;
  const int32_t gap = part->columns - width, turn = part->in_row - width * channels;
#define BYTE(i)        \
  do {                 \
    plane[i] = *image; \
    image += channels; \
  } while (0)
  for (int32_t y = part->rows; y > 0; y--) {
    for (int32_t i = fours; i > 0; i--) {
      BYTE(0);
      BYTE(1);
      BYTE(2);
      BYTE(3);
      plane += 4;
    }
    if ((rest & 2) != 0) {
      BYTE(0);
      BYTE(1);
      plane += 2;
    }
    if ((rest & 1) != 0) {
      BYTE(0);
      plane++;
    }
    plane += gap;
    image += turn;
  }
#undef BYTE
}

typedef struct {
  const TINYET_ROM int32_t *stream;
  int32_t rows;
  int32_t pairs;    /* bytes of a row's outputs that are computed in pairs */
  int32_t rest;     /* outputs of a row by themselves */
  int32_t columns;  /* bytes from row to row of the plane */
  int32_t channels; /* bytes from output to output */
  int32_t next_two; /* bytes from the last row of a window to the next but one, and to the next */
  int32_t next;
  int32_t turn;     /* bytes from the window behind the last one of a row to the first one of the next */
  int32_t fours;    /* bytes of a row's outputs that are computed four at a time, before the pairs */
} plane_walk;

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2 && defined(__thumb__)
enum { IN_FOURS = 0 };
#define ADD(sum, w) "mla " sum ", r9, " w ", " sum "\n"
#define ROW_OF_TWO(a, b, c)                           \
  "ldrsb r9, [r12]\n" ADD("r10", a)                   \
  "ldrsb r9, [r12, #1]\n" ADD("r10", b) ADD("r11", a) \
  "ldrsb r9, [r12, #2]\n" ADD("r10", c) ADD("r11", b) \
  "ldrsb r9, [r12, #3]\n" ADD("r11", c)
#define ROW_OF_ONE(a, b, c)             \
  "ldrsb r9, [r12]\n" ADD("r10", a)     \
  "ldrsb r9, [r12, #1]\n" ADD("r10", b) \
  "ldrsb r9, [r12, #2]\n" ADD("r10", c)
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
/* Of a channel; two outputs at a time, then what is left of a row. */
#define OUTPUTS(ROUND)                     \
  "1:\n"                                   \
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
  "ldr r9, [sp, #48]\n"                    \
  "add r12, r12, r9\n"                     \
  "ldr r9, [sp, #20]\n"                    \
  "subs r9, r9, #1\n"                      \
  "str r9, [sp, #20]\n"                    \
  "bne 1b\n"

/* Weights in r0 ... r8, an input in r9, two sums in r10 and r11, the window at r12, outputs at lr. On the stack start,
 * multiplier, offset and away, where pairs of a row end, and the walk without its stream. */
__attribute__((naked, noinline)) static void channel(const int8_t *plane __attribute__((unused)),
                                                     int8_t *output __attribute__((unused)),
                                                     const plane_walk *walk __attribute__((unused))) {
  __asm__ volatile(
      "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
      "sub sp, sp, #52\n"
      "mov r12, r0\n"
      "mov lr, r1\n"
      "ldm r2, {r1, r3, r4, r5, r6, r7, r8, r9, r10}\n"
      "add r11, sp, #20\n"
      "stm r11, {r3, r4, r5, r6, r7, r8, r9, r10}\n"
      "ldm r1!, {r4, r5, r6, r7}\n"
      "stm sp, {r4, r5, r6, r7}\n"
      "orr r10, r6, r7\n"
      "ldm r1, {r0, r1, r2, r3, r4, r5, r6, r7, r8}\n"
      "cmp r10, #0\n"
      "bne 7f\n"
      OUTPUTS(FOLDED)
      "6:\n"
      "add sp, sp, #52\n"
      "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n"
      "7:\n"
      OUTPUTS(ANY)
      "b 6b\n");
}
#undef ADD
#undef ROW_OF_TWO
#undef ROW_OF_ONE
#undef DOWN
#undef FOLDED
#undef ANY
#undef OUTPUTS
#elif defined(__riscv) && __riscv_xlen == 32 && defined(__riscv_mul) && !defined(__riscv_32e)
enum { IN_FOURS = 1 };
#define PRODUCT(sum, before, w) "mul t1, t0, " w "\n" "add " sum ", " before ", t1\n"
#define ROW_OF_TWO(first, second, a, b, c)                                     \
  "lb t0, 0(a0)\n" PRODUCT("a6", first, a)                                     \
  "lb t0, 1(a0)\n" PRODUCT("a6", "a6", b) PRODUCT("a7", second, a)             \
  "lb t0, 2(a0)\n" PRODUCT("a6", "a6", c) PRODUCT("a7", "a7", b)               \
  "lb t0, 3(a0)\n" PRODUCT("a7", "a7", c)
#define ROW_OF_FOUR(first, second, third, fourth, a, b, c)                     \
  "lb t0, 0(a0)\n" PRODUCT("a6", first, a)                                     \
  "lb t0, 1(a0)\n" PRODUCT("a6", "a6", b) PRODUCT("a7", second, a)             \
  "lb t0, 2(a0)\n" PRODUCT("a6", "a6", c) PRODUCT("a7", "a7", b) PRODUCT("t2", third, a) \
  "lb t0, 3(a0)\n" PRODUCT("a7", "a7", c) PRODUCT("t2", "t2", b) PRODUCT("t3", fourth, a) \
  "lb t0, 4(a0)\n" PRODUCT("t2", "t2", c) PRODUCT("t3", "t3", b)               \
  "lb t0, 5(a0)\n" PRODUCT("t3", "t3", c)
#define ROW_OF_ONE(first, a, b, c)             \
  "lb t0, 0(a0)\n" PRODUCT("a6", first, a)     \
  "lb t0, 1(a0)\n" PRODUCT("a6", "a6", b)      \
  "lb t0, 2(a0)\n" PRODUCT("a6", "a6", c)
#define DOWN "add a0, a0, a2\n"
#define CLAMPED(sum)                      \
  "srai " sum ", " sum ", 12\n"           \
  "ble " sum ", t5, 8f\n"                 \
  "mv " sum ", t5\n"                      \
  "8:\n"                                  \
  "bge " sum ", t6, 8f\n"                 \
  "mv " sum ", t6\n"                      \
  "8:\n"                                  \
  "sb " sum ", 0(a1)\n"                   \
  "add a1, a1, a3\n"
#define FOLDED(sum) "mulh " sum ", " sum ", s10\n" CLAMPED(sum)
#define ANY(sum)                                                                  \
  "mulh " sum ", " sum ", s10\n"                                                  \
  "srai t0, " sum ", 31\n" "and t0, t0, ra\n" "sub " sum ", " sum ", t0\n"        \
  "add " sum ", " sum ", s11\n" CLAMPED(sum)
/* Four outputs at a time. */
#define FOURS(ROUND)                                              \
  "lw a5, 36(t4)\n"                                               \
  "beqz a5, 7f\n"                                                 \
  "add a5, a5, a1\n"                                              \
  "6:\n"                                                          \
  ROW_OF_FOUR("s9", "s9", "s9", "s9", "s0", "s1", "s2") DOWN      \
  ROW_OF_FOUR("a6", "a7", "t2", "t3", "s3", "s4", "s5") DOWN      \
  ROW_OF_FOUR("a6", "a7", "t2", "t3", "s6", "s7", "s8")           \
  ROUND("a6") ROUND("a7") ROUND("t2") ROUND("t3")                 \
  "addi a0, a0, 2\n"                                              \
  "add a0, a0, a4\n"                                              \
  "bne a1, a5, 6b\n"                                              \
  "7:\n"
/* Of a channel: most of a row, two outputs at a time, then what is left of it. */
#define OUTPUTS(ROUND)                          \
  "1:\n"                                        \
  FOURS(ROUND)                                  \
  "lw a5, 8(t4)\n"                              \
  "beqz a5, 3f\n"                               \
  "add a5, a5, a1\n" /* where pairs of this row end */ \
  "2:\n"                                        \
  ROW_OF_TWO("s9", "s9", "s0", "s1", "s2") DOWN \
  ROW_OF_TWO("a6", "a7", "s3", "s4", "s5") DOWN \
  ROW_OF_TWO("a6", "a7", "s6", "s7", "s8")      \
  ROUND("a6")                                   \
  ROUND("a7")                                   \
  "add a0, a0, a4\n"                            \
  "bne a1, a5, 2b\n"                            \
  "3:\n"                                        \
  "lw t2, 12(t4)\n"                             \
  "lw t3, 28(t4)\n"                             \
  "beqz t2, 5f\n"                               \
  "4:\n"                                        \
  ROW_OF_ONE("s9", "s0", "s1", "s2") DOWN       \
  ROW_OF_ONE("a6", "s3", "s4", "s5") DOWN       \
  ROW_OF_ONE("a6", "s6", "s7", "s8")            \
  ROUND("a6")                                   \
  "add a0, a0, t3\n"                            \
  "addi t2, t2, -1\n"                           \
  "bnez t2, 4b\n"                               \
  "5:\n"                                        \
  "lw t0, 32(t4)\n"                             \
  "add a0, a0, t0\n"                            \
  "lw t0, 56(sp)\n"                             \
  "addi t0, t0, -1\n"                           \
  "sw t0, 56(sp)\n"                             \
  "bnez t0, 1b\n"

/* Weights in s0 ... s8, start, multiplier and offset in s9 ... s11, away in ra, two sums in a6 and a7. */
__attribute__((naked, noinline)) static void channel(const int8_t *plane __attribute__((unused)),
                                                     int8_t *output __attribute__((unused)),
                                                     const plane_walk *walk __attribute__((unused))) {
  __asm__ volatile(
      "addi sp, sp, -64\n"
      "sw ra, 4(sp)\n"
      "sw s0, 8(sp)\n" "sw s1, 12(sp)\n" "sw s2, 16(sp)\n" "sw s3, 20(sp)\n" "sw s4, 24(sp)\n" "sw s5, 28(sp)\n"
      "sw s6, 32(sp)\n" "sw s7, 36(sp)\n" "sw s8, 40(sp)\n" "sw s9, 44(sp)\n" "sw s10, 48(sp)\n" "sw s11, 52(sp)\n"
      "mv t4, a2\n"
      "lw t0, 0(t4)\n"
      "lw s9, 0(t0)\n" "lw s10, 4(t0)\n" "lw s11, 8(t0)\n" "lw ra, 12(t0)\n"
      "lw s0, 16(t0)\n" "lw s1, 20(t0)\n" "lw s2, 24(t0)\n" "lw s3, 28(t0)\n" "lw s4, 32(t0)\n" "lw s5, 36(t0)\n"
      "lw s6, 40(t0)\n" "lw s7, 44(t0)\n" "lw s8, 48(t0)\n"
      "lw t0, 4(t4)\n"
      "sw t0, 56(sp)\n"
      "lw a2, 16(t4)\n"
      "lw a3, 20(t4)\n"
      "lw a4, 24(t4)\n"
      "li t5, 127\n"
      "li t6, -128\n"
      "or t0, s11, ra\n"
      "bnez t0, 0f\n"
      OUTPUTS(FOLDED)
      "9:\n"
      "lw ra, 4(sp)\n"
      "lw s0, 8(sp)\n" "lw s1, 12(sp)\n" "lw s2, 16(sp)\n" "lw s3, 20(sp)\n" "lw s4, 24(sp)\n" "lw s5, 28(sp)\n"
      "lw s6, 32(sp)\n" "lw s7, 36(sp)\n" "lw s8, 40(sp)\n" "lw s9, 44(sp)\n" "lw s10, 48(sp)\n" "lw s11, 52(sp)\n"
      "addi sp, sp, 64\n"
      "ret\n"
      "0:\n"
      OUTPUTS(ANY)
      "j 9b\n");
}
#undef PRODUCT
#undef ROW_OF_FOUR
#undef ROW_OF_TWO
#undef ROW_OF_ONE
#undef DOWN
#undef CLAMPED
#undef FOLDED
#undef ANY
#undef FOURS
#undef OUTPUTS
#else
enum { IN_FOURS = 0 };
static void channel(const int8_t *plane, int8_t *output, const plane_walk *walk) {
  const TINYET_ROM int32_t *const w = walk->stream;
  const int32_t columns = walk->columns, channels = walk->channels, next_two = walk->next_two, next = walk->next;
  const int32_t start = w[0], multiplier = w[1], offset = w[2], away = w[3];
  const int32_t a = w[4], b = w[5], c = w[6], d = w[7], e = w[8], f = w[9], g = w[10], h = w[11], i = w[12];
  for (int32_t y = walk->rows; y > 0; y--) {
    for (const int8_t *end = output + walk->pairs; output != end;) {
      int32_t first = start, second = start;
#define ROW(j, k, l)                                    \
  do {                                                  \
    const int32_t x = plane[0], u = plane[1], v = plane[2], z = plane[3]; \
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
      output[channels] = (int8_t)tinyet_one_product(second, multiplier, offset, away, 12u);
      output += 2 * channels;
      plane += next_two;
    }
    for (int32_t x = walk->rest; x > 0; x--) {
      int32_t sum = start + plane[0] * a + plane[1] * b + plane[2] * c;
      plane += columns;
      sum += plane[0] * d + plane[1] * e + plane[2] * f;
      plane += columns;
      sum += plane[0] * g + plane[1] * h + plane[2] * i;
      *output = (int8_t)tinyet_one_product(sum, multiplier, offset, away, 12u);
      output += channels;
      plane += next;
    }
    plane += walk->turn;
  }
}
#endif

void tinyet_depthwise_s8_chw_3x3_2x1(const int8_t *input, int8_t *output, void *scratch,
                                     const tinyet_depthwise_s8_chw_3x3_2x1_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t rows = (s->out_h - 1) * s->stride_h + 3, columns = (s->out_w - 1) * s->stride_w + 3;
  const int32_t fours = IN_FOURS != 0 && s->stride_w == 1 ? s->out_w / 4 : 0;
  const int32_t pairs = s->stride_w == 1 ? s->out_w / 2 - 2 * fours : 0, count = s->out_h * s->out_w * s->in_c;
  plane_walk walk = {params->stream,
                     s->out_h,
                     2 * pairs * s->in_c,
                     s->out_w - 4 * fours - 2 * pairs,
                     columns,
                     s->in_c,
                     2 - 2 * columns,
                     s->stride_w - 2 * columns,
                     s->stride_h * columns - s->out_w * s->stride_w,
                     4 * fours * s->in_c};
  const int32_t right = columns - s->pad_left, bottom = rows - s->pad_top;
  const inside part = {s->in_h < bottom ? s->in_h : bottom, s->in_w < right ? s->in_w : right, columns,
                       s->in_w * s->in_c, s->in_c};
  int8_t *const plane = (int8_t *)scratch;
  memset(plane, (int)params->padding, (size_t)(rows * columns));
  for (int32_t n = 0; n < s->batch; n++) {
    walk.stream = params->stream;
    for (int32_t c = 0; c < s->in_c; c++) {
      copy(plane + s->pad_top * columns + s->pad_left, input + c, &part);
      channel(plane, output + c, &walk);
      walk.stream += 13;
    }
    tinyet_clamp_outputs(output, count, params->clamp_low, params->clamp_high);
    input += s->in_h * s->in_w * s->in_c;
    output += count;
  }
}
