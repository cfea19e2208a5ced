/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_paired.h"
#include "tinyet_one_product.h"
#include "tinyet_straight.h"
#include "tinyet_windows_in_threes_body.h"

enum { PIXELS = 6, CHANNELS = 4 };

#if defined(__riscv) && __riscv_xlen == 32 && defined(__riscv_mul) && !defined(__riscv_32e)
/* six(x) is x where a tile has six pixels, nothing where it has three. */
#define SIX(x) x
#define NONE(x) ""
#define PRODUCT(x, w, before, sum) "mul t1, " x ", " w "\n" "add " sum ", " before ", t1\n"
#define PRODUCTS(x, a, b, c, d) \
  PRODUCT(x, "t2", a, a) PRODUCT(x, "t3", b, b) PRODUCT(x, "t4", c, c) PRODUCT(x, "t5", d, d)
#define FIRST_PRODUCTS(x, start, a, b, c, d) \
  PRODUCT(x, "t2", start, a) PRODUCT(x, "t3", start, b) PRODUCT(x, "t4", start, c) PRODUCT(x, "t5", start, d)
#define LOADS(i)                                                                \
  "lw t0, 16*" #i "(a6)\n"                                                      \
  "lb t2, 4*" #i "(a7)\n" "lb t3, 4*" #i "+1(a7)\n" "lb t4, 4*" #i "+2(a7)\n" "lb t5, 4*" #i "+3(a7)\n" \
  "lw t6, 16*" #i "+4(a6)\n"
#define TAP(i, six)                                                             \
  LOADS(i)                                                                      \
  PRODUCTS("t0", "s0", "s1", "s2", "s3")                                        \
  six("lw t0, 16*" #i "+8(a6)\n")                                               \
  PRODUCTS("t6", "s4", "s5", "s6", "s7")                                        \
  six("lw t6, 16*" #i "+12(a6)\n"                                               \
      PRODUCTS("t0", "s8", "s9", "s10", "s11") PRODUCTS("t6", "a0", "a1", "a2", "a3"))
/* That of a part: sums begin with a4 and a5. */
#define FIRST(six)                                                              \
  LOADS(0)                                                                      \
  FIRST_PRODUCTS("t0", "a4", "s0", "s1", "s2", "s3")                            \
  six("lw t0, 8(a6)\n")                                                         \
  FIRST_PRODUCTS("t6", "a5", "s4", "s5", "s6", "s7")                            \
  six("lw t6, 12(a6)\n"                                                         \
      FIRST_PRODUCTS("t0", "a4", "s8", "s9", "s10", "s11") FIRST_PRODUCTS("t6", "a5", "a0", "a1", "a2", "a3"))
/* Sums of three pixels: those of the first where its word was, of the second in t0, of the third where the other word was. */
#define OPEN(word, other)                                                       \
  "srli t0, " word ", 21\n" "slli t0, t0, 10\n" "sub t0, " other ", t0\n"       \
  "and " word ", " word ", a4\n" "and t0, t0, a4\n"                             \
  "sub " other ", " other ", t0\n" "srli " other ", " other ", 10\n"
/* What makes outputs of one channel, whose words are at `at` behind those of the part. */
#define CHANNEL(at, from)                                                       \
  "lw t2, " #at "(" from ")\n" "lw t3, " #at "+4(" from ")\n"                   \
  "lw t4, " #at "+8(" from ")\n" "lw t1, " #at "+12(" from ")\n"                \
  "andi t5, t4, -128\n"                                                         \
  "add a5, a5, t1\n"                                                            \
  "addi t6, t5, 255\n"
/* n: names labels; what is clamped is stored by CLAMPED. */
#define OUTPUT(n, sum, less)                                                    \
  "add " sum ", " sum ", t2\n"                                                  \
  "mulhsu " sum ", " sum ", t3\n" less(sum)                                     \
  "sra " sum ", " sum ", t4\n"                                                  \
  "blt " sum ", t5, 1" #n "f\n"                                                 \
  "blt t6, " sum ", 2" #n "f\n"                                                 \
  "sb " sum ", 0(a5)\n"                                                         \
  "3" #n ":\n"
#define CLAMPED(n)                                                              \
  "1" #n ":\n" "sb t5, 0(a5)\n" "j 3" #n "b\n"                                  \
  "2" #n ":\n" "sb t6, 0(a5)\n" "j 3" #n "b\n"
#define KEEP(sum) ""
/* Of a sum below zero. */
#define LESS(sum) "slt t1, " sum ", s7\n" "sub " sum ", " sum ", t1\n"
#define LESS_OF_TILE(sum) "slt t1, " sum ", a7\n" "sub " sum ", " sum ", t1\n"
#define ONWARD "add a5, a5, a6\n"
#define BACK "sub a5, a5, a6\n"
#define FORWARD(n, a, b, c, d, six, less)                                                                        \
  OPEN(a, b) OUTPUT(n##0, a, less) ONWARD OUTPUT(n##1, "t0", less) ONWARD OUTPUT(n##2, b, less)                  \
  six(OPEN(c, d) ONWARD OUTPUT(n##3, c, less) ONWARD OUTPUT(n##4, "t0", less) ONWARD OUTPUT(n##5, d, less))
#define BACKWARD(n, a, b, c, d, six, less)                                                                       \
  six(OPEN(c, d) OUTPUT(n##5, d, less) BACK OUTPUT(n##4, "t0", less) BACK OUTPUT(n##3, c, less) BACK)            \
  OPEN(a, b) OUTPUT(n##2, b, less) BACK OUTPUT(n##1, "t0", less) BACK OUTPUT(n##0, a, less)
/* Of all four channels; zero(at): what a channel has there. */
#define OUTPUTS(n, six, less, zero)                                                                              \
  CHANNEL(12, "ra") zero(28) FORWARD(n##0, "s0", "s4", "s8", "a0", six, less)                                    \
  CHANNEL(32, "ra") zero(48) BACKWARD(n##1, "s1", "s5", "s9", "a1", six, less)                                   \
  CHANNEL(52, "ra") zero(68) FORWARD(n##2, "s2", "s6", "s10", "a2", six, less)                                   \
  CHANNEL(72, "ra") zero(88) BACKWARD(n##3, "s3", "s7", "s11", "a3", six, less)
#define NO_ZERO(at) ""
#define ZERO(at) "lw a7, " #at "(ra)\n"
#define ALL_CLAMPED(n, six) \
  CLAMPED(n##0) CLAMPED(n##1) CLAMPED(n##2) six(CLAMPED(n##3) CLAMPED(n##4) CLAMPED(n##5))
#define ADD_BEFORE(at, sum) "lw t0, " #at "(a2)\n" "add " sum ", " sum ", t0\n"

/* All channels of six pixels, or of three. In the products sums are in s0 ... s11 and a0 ... a3, inputs at a6, weights at a7,
 * their end in a4, what the part is at ra. */
#define TILE(name, six, size)                                                                                          \
  __attribute__((naked, noinline)) static void name(                                                                   \
      const void *patch __attribute__((unused)), const uint32_t *stream __attribute__((unused)),                       \
      const int8_t *weights __attribute__((unused)), int8_t *output __attribute__((unused)),                           \
      int32_t row __attribute__((unused))) {                                                                           \
    __asm__ volatile(                                                                                                  \
        "addi sp, sp, -224\n"                                                                                          \
        "sw a0, 0(sp)\n" "sw a3, 4(sp)\n" "sw a4, 8(sp)\n" "sw ra, 12(sp)\n"                                           \
        "sw s0, 16(sp)\n" "sw s1, 20(sp)\n" "sw s2, 24(sp)\n" "sw s3, 28(sp)\n" "sw s4, 32(sp)\n" "sw s5, 36(sp)\n"    \
        "sw s6, 40(sp)\n" "sw s7, 44(sp)\n" "sw s8, 48(sp)\n" "sw s9, 52(sp)\n" "sw s10, 56(sp)\n" "sw s11, 60(sp)\n"  \
        "mv ra, a1\n"                                                                                                  \
        "mv a7, a2\n"                                                                                                  \
        "1:\n"                                                                                                         \
        "lw a6, 0(sp)\n"                                                                                               \
        "2:\n"                                                                                                         \
        "lui a4, 0x100\n"   /* FIRST_SUM; of the third it leaves the word */                                           \
        "lui a5, 0x40100\n" /* SECOND_SUM */                                                                           \
        FIRST(six)                                                                                                     \
        "lw t0, 0(ra)\n" "lw t1, 4(ra)\n"                                                                              \
        "li t2, " #size "\n"                                                                                           \
        "lla t3, 4f\n"                                                                                                 \
        "add a4, a7, t0\n"                                                                                             \
        "mul t2, t2, t1\n"                                                                                             \
        "slli t1, t1, 2\n" "sub a7, a7, t1\n"                                                                          \
        "slli t1, t1, 2\n" "sub a6, a6, t1\n"                                                                          \
        "add t2, t2, t3\n"                                                                                             \
        "jr t2\n"                                                                                                      \
        ".option push\n"                                                                                               \
        ".option norvc\n"                                                                                              \
        ".option norelax\n"                                                                                            \
        "4:\n"                                                                                                         \
        TAP(1, six) TAP(2, six) TAP(3, six) TAP(4, six) TAP(5, six) TAP(6, six) TAP(7, six) TAP(8, six)                \
        "addi a6, a6, 128\n"                                                                                           \
        "addi a7, a7, 32\n"                                                                                            \
        "bne a7, a4, 4b\n"                                                                                             \
        ".option pop\n"                                                                                                \
        "lw t0, 8(ra)\n"                                                                                               \
        "lui a4, 0x200\n" "addi a4, a4, -1\n"                                                                          \
        "lw a5, 4(sp)\n"                                                                                               \
        "bnez t0, 6f\n"                                                                                                \
        "lw a6, 8(sp)\n"                                                                                               \
        OUTPUTS(1, six, KEEP, NO_ZERO)                                                                                 \
        "5:\n"                                                                                                         \
        "lw t1, 92(ra)\n"                                                                                              \
        "addi a7, a7, 4\n"                                                                                             \
        "addi ra, ra, 92\n"                                                                                            \
        "bgez t1, 1b\n"                                                                                                \
        "lw ra, 12(sp)\n"                                                                                              \
        "lw s0, 16(sp)\n" "lw s1, 20(sp)\n" "lw s2, 24(sp)\n" "lw s3, 28(sp)\n" "lw s4, 32(sp)\n" "lw s5, 36(sp)\n"    \
        "lw s6, 40(sp)\n" "lw s7, 44(sp)\n" "lw s8, 48(sp)\n" "lw s9, 52(sp)\n" "lw s10, 56(sp)\n" "lw s11, 60(sp)\n"  \
        "addi sp, sp, 224\n"                                                                                           \
        "ret\n"                                                                                                        \
        ALL_CLAMPED(10, six) ALL_CLAMPED(11, six) ALL_CLAMPED(12, six) ALL_CLAMPED(13, six)                            \
        "6:\n"                                                                                                         \
        TWO_SIDED_OF_##name                                                                                            \
        /* Channel by channel, from the stack. */                                                                \
        "sw s0, 64(sp)\n" "sw s4, 68(sp)\n" "sw s1, 80(sp)\n" "sw s5, 84(sp)\n"                                        \
        "sw s2, 96(sp)\n" "sw s6, 100(sp)\n" "sw s3, 112(sp)\n" "sw s7, 116(sp)\n"                                     \
        six("sw s8, 72(sp)\n" "sw a0, 76(sp)\n" "sw s9, 88(sp)\n" "sw a1, 92(sp)\n"                                    \
            "sw s10, 104(sp)\n" "sw a2, 108(sp)\n" "sw s11, 120(sp)\n" "sw a3, 124(sp)\n")                             \
        "andi s8, t0, 1\n" "andi s9, t0, 2\n"                                                                          \
        "addi s11, a6, 16\n" /* where the next part's inputs are */                                                    \
        "lw a6, 8(sp)\n"                                                                                               \
        "addi a1, sp, 64\n" "addi a2, sp, 128\n" "addi a3, ra, 12\n" "addi s0, sp, 128\n"                              \
        "7:\n"                                                                                                         \
        "lw s1, 0(a1)\n" "lw s2, 4(a1)\n" OPEN("s1", "s2") "mv s3, t0\n"                                               \
        six("lw s4, 8(a1)\n" "lw s5, 12(a1)\n" OPEN("s4", "s5") "mv s6, t0\n")                                         \
        "beqz s8, 8f\n"                                                                                                \
        ADD_BEFORE(0, "s1") ADD_BEFORE(4, "s3") ADD_BEFORE(8, "s2")                                                    \
        six(ADD_BEFORE(12, "s4") ADD_BEFORE(16, "s6") ADD_BEFORE(20, "s5"))                                            \
        "8:\n"                                                                                                         \
        "beqz s9, 8f\n"                                                                                                \
        "sw s1, 0(a2)\n" "sw s3, 4(a2)\n" "sw s2, 8(a2)\n"                                                             \
        six("sw s4, 12(a2)\n" "sw s6, 16(a2)\n" "sw s5, 20(a2)\n")                                                     \
        "j 9f\n"                                                                                                       \
        "8:\n"                                                                                                         \
        CHANNEL(0, "a3") "lw s7, 16(a3)\n"                                                                             \
        "mv s10, a5\n"                                                                                                 \
        OUTPUT(140, "s1", LESS) ONWARD OUTPUT(141, "s3", LESS) ONWARD OUTPUT(142, "s2", LESS)                          \
        six(ONWARD OUTPUT(143, "s4", LESS) ONWARD OUTPUT(144, "s6", LESS) ONWARD OUTPUT(145, "s5", LESS))              \
        "mv a5, s10\n"                                                                                                 \
        "9:\n"                                                                                                         \
        "addi a1, a1, 16\n" "addi a2, a2, 24\n" "addi a3, a3, 20\n"                                                    \
        "bne a1, s0, 7b\n"                                                                                             \
        "beqz s9, 5b\n"                                                                                                \
        "addi a7, a7, 4\n" "addi ra, ra, 12\n"                                                                         \
        "mv a6, s11\n"                                                                                                 \
        "j 2b\n"                                                                                                       \
        ALL_CLAMPED(14, six));                                                                                         \
  }
/* Halves of six pixels' sums below zero are seen, and there is no other part. */
#define TWO_SIDED_OF_six_pixels                                                                                  \
  "li t1, 4\n"                                                                                                   \
  "bne t0, t1, 6f\n"                                                                                             \
  "lw a6, 8(sp)\n"                                                                                               \
  "sw a7, 64(sp)\n"                                                                                              \
  OUTPUTS(2, SIX, LESS_OF_TILE, ZERO)                                                                            \
  "lw a7, 64(sp)\n"                                                                                              \
  "j 5b\n"                                                                                                       \
  ALL_CLAMPED(20, SIX) ALL_CLAMPED(21, SIX) ALL_CLAMPED(22, SIX) ALL_CLAMPED(23, SIX)                            \
  "6:\n"
#define TWO_SIDED_OF_three_pixels
TILE(six_pixels, SIX, 160)
TILE(three_pixels, NONE, 88)
#undef SIX
#undef NONE
#undef PRODUCT
#undef PRODUCTS
#undef FIRST_PRODUCTS
#undef LOADS
#undef TAP
#undef FIRST
#undef OPEN
#undef CHANNEL
#undef OUTPUT
#undef CLAMPED
#undef KEEP
#undef LESS
#undef LESS_OF_TILE
#undef OUTPUTS
#undef NO_ZERO
#undef ZERO
#undef TWO_SIDED_OF_six_pixels
#undef TWO_SIDED_OF_three_pixels
#undef ONWARD
#undef BACK
#undef FORWARD
#undef BACKWARD
#undef ALL_CLAMPED
#undef ADD_BEFORE
#undef TILE
#define IN_ASSEMBLY
#elif defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2 && defined(__thumb__)
#include "tinyet_paired_threes_thumb_body.h"
#define IN_ASSEMBLY
#endif

#ifdef IN_ASSEMBLY
static void outputs(const void *patch, int8_t *output, int32_t row, int32_t count,
                    const tinyet_conv2d_s8_paired_threes_6x4_params *params) {
  if (count > PIXELS / 2) {
    six_pixels(patch, params->outputs.stream, params->weights, output, row);
  } else {
    three_pixels(patch, params->outputs.stream, params->weights, output, row);
  }
}
#undef IN_ASSEMBLY
#else
/* Words that make outputs of a channel's sums, of which direct ones are shifted to the upper end of a word, or a little less far
 * where they have more bits. */
enum { ROUNDING = 5, DIRECT = 3, IS_DIRECT = 8, IS_WIDE = 16, UPPER = 32 - FIELD, BELOW = 2, SHIFT = 12 };

/* Of one channel and three pixels, whose inputs are two words a tap. */
static void add_part(uint32_t sums[3], const word *x, const TINYET_ROM int8_t *weights, int32_t taps) {
  uint32_t first = FIRST_SUM, second = SECOND_SUM;
  for (; taps > 0; taps--) {
    const int32_t weight = *weights;
    first += x[0] * (uint32_t)weight;
    second += x[1] * (uint32_t)weight;
    x += STEP;
    weights += CHANNELS;
  }
  add_three(sums, first, second);
}

static void outputs(const void *patch, int8_t *output, int32_t row, int32_t count,
                    const tinyet_conv2d_s8_paired_threes_6x4_params *params) {
  const TINYET_ROM uint32_t *part = params->outputs.stream;
  const TINYET_ROM int8_t *weights = params->weights;
  while ((part[0] >> 31) == 0) {
    uint32_t sums[CHANNELS][PIXELS] = {{0}};
    const word *x = (const word *)patch;
    for (int32_t more = 1; more != 0;) {
      const int32_t taps = (int32_t)(part[0] / CHANNELS) + 1;
      for (int32_t c = 0; c < CHANNELS; c++) {
        for (int32_t i = 0; i < count; i += 3) {
          add_part(sums[c] + i, x + 2 * (i / 3), weights + c, taps);
        }
      }
      more = (int32_t)(part[2] & 2u);
      weights += CHANNELS * taps;
      x += STEP * taps;
      part += 3;
    }
    int8_t *to = output;
    if ((part[-1] & (IS_DIRECT | IS_WIDE)) != 0) {
      const uint32_t upper = (part[-1] & IS_WIDE) != 0 ? UPPER - BELOW : UPPER;
      for (int32_t c = 0; c < CHANNELS; c++, part += DIRECT) {
        to += (int32_t)part[2];
        for (int32_t i = 0; i < count; i++) {
          const uint32_t sum = (sums[c][i] << upper) + part[0];
          const int32_t value = tinyet_upper_half((int32_t)sum, (int32_t)part[1]) >> SHIFT;
          to[i * row] = (int8_t)(value < -128 ? -128 : value > 127 ? 127 : value);
        }
      }
      continue;
    }
    for (int32_t c = 0; c < CHANNELS; c++) {
      const int32_t place = (int32_t)(part[2] & ~(uint32_t)127) + 128;
      to += (int32_t)part[3];
      for (int32_t i = 0; i < count; i++) {
        to[i * row] = tinyet_straight((int32_t)(sums[c][i] + part[0]), part[1], part[2] & 31u, place, (int32_t)part[4]);
      }
      part += ROUNDING;
    }
  }
}
#endif

#define KERNEL tinyet_conv2d_s8_paired_threes_6x4
#define PARAMS tinyet_conv2d_s8_paired_threes_6x4_params
#define IS_TILE(count) ((count) == PIXELS || (count) == PIXELS / 2)
#define PADDING params->outputs.padding
#define CLAMP(values, count) \
  tinyet_clamp_outputs(values, count, params->outputs.clamp_low, params->outputs.clamp_high)
#include "tinyet_conv2d_threes_body.h"
