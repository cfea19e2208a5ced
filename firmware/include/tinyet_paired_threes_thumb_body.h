/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of tinyet_conv2d_s8_paired_threes_6x4.c for cores with Thumb-2. */
#ifndef TINYET_PAIRED_THREES_THUMB_BODY_H
#define TINYET_PAIRED_THREES_THUMB_BODY_H

#include <stdint.h>

/* Two channels at a time: so many sums have room in registers. SIX(x) is x where a tile has six pixels, nothing where it
 * has three. */
#define SIX(x) x
#define NONE(x) ""
#define NOT_SIX(x) ""
#define NOT_NONE(x) x
/* A load that moves its base on would not overlap with the one before it: a turn moves it once, and begins so much before the
 * weights as it skips. */
#define WEIGHTS(second, first) "ldrsb lr, [r1, #" second "]\n" "ldrsb r12, [r1" first "\n"
#define WORDS(six) six("ldm r0!, {r10, r11}\n") NOT_##six("ldrd r10, r11, [r0], #16\n")
#define PRODUCTS(first, second, first_other, second_other, before, before_second)              \
  "mla " first ", r10, r12, " before(first) "\n" "mla " second ", r11, r12, " before_second(second) "\n" \
  "mla " first_other ", r10, lr, " before(first_other) "\n" "mla " second_other ", r11, lr, " before_second(second_other) "\n"
#define ITSELF(sum) sum
#define R8(sum) "r8"
#define R9(sum) "r9"
#define TAP(six, second, first)                                                 \
  WEIGHTS(second, ", #" first "]") WORDS(six)                                   \
  PRODUCTS("r2", "r3", "r6", "r7", ITSELF, ITSELF)                              \
  six("ldm r0!, {r10, r11}\n" PRODUCTS("r4", "r5", "r8", "r9", ITSELF, ITSELF))
#define TAPS(six)                                                               \
  TAP(six, "1", "0") TAP(six, "5", "4") TAP(six, "9", "8") TAP(six, "13", "12") \
  TAP(six, "17", "16") TAP(six, "21", "20") TAP(six, "25", "24") TAP(six, "29", "28") \
  TAP(six, "33", "32") TAP(six, "37", "36") TAP(six, "41", "40") TAP(six, "45", "44") \
  TAP(six, "49", "48") TAP(six, "53", "52") TAP(six, "57", "56") TAP(six, "61", "60")
/* That of a part, of which r4 taps of a turn are skipped: sums begin with OFFSET of the first, and of the second and third. */
#define FIRST(six)                                                              \
  "mov r8, #0x100000\n" "add r9, r8, #0x40000000\n"                             \
  WEIGHTS("1", "], #4") "sub r1, r1, r4, lsl #2\n" WORDS(six)                   \
  PRODUCTS("r2", "r3", "r6", "r7", R8, R9)                                      \
  six("ldm r0!, {r10, r11}\n" PRODUCTS("r4", "r5", "r8", "r9", R8, R9))
/* What makes outputs of one channel, whose words are at r12: r0, twice what is added to its sums; r1, half its multiplier,
 * which is even; its place in r6, shift in r7, zero in r8. Outputs are at r10, from pixel to pixel r11. */
#define CHANNEL                                                                 \
  "ldm r12!, {r0, r1, r6, r7, r8}\n"                                            \
  "add r10, r10, r7\n"                                                          \
  "and r7, r6, #31\n" "sub r6, r6, r7\n" "add r6, r6, #128\n"                   \
  "lsl r0, r0, #1\n" "lsr r1, r1, #1\n"
/* sum: twice what it is. */
#define OUTPUT(sum, to, less)                                                   \
  "smull lr, " sum ", " sum ", r1\n" less(sum)                                  \
  "asr " sum ", " sum ", r7\n"                                                  \
  "sub " sum ", " sum ", r6\n"                                                  \
  "ssat " sum ", #8, " sum "\n"                                                 \
  "strb " sum ", " to "\n"
#define KEEP(sum) ""
/* Of a sum below zero. */
#define LESS(sum) "sub lr, " sum ", r8\n" "add " sum ", " sum ", lr, asr #31\n"
#define TWO_ROWS "add r10, r10, r11, lsl #1\n"
/* Of three sums the first where its word is, the second in r9, both above 11 bits of zeros; of the third 2^10 times the sum
 * where the other word was. */
#define OPEN(word, other)                                                       \
  "lsr r9, " word ", #21\n" "sub r9, " other ", r9, lsl #10\n"                  \
  "lsl " word ", " word ", #11\n" "lsl r9, r9, #11\n"                           \
  "sub " other ", " other ", r9, lsr #11\n"
#define TWICE(sum, by) "add " sum ", r0, " sum ", lsr #" by "\n"
#define THREE_OUTPUTS(word, other, first, second, third, between, behind, less)                  \
  OPEN(word, other)                                                                             \
  TWICE(word, "10") OUTPUT(word, first, less) between                                           \
  TWICE("r9", "10") OUTPUT("r9", second, less) behind                                           \
  TWICE(other, "9") OUTPUT(other, third, less)
#define OUTPUTS_OF_CHANNEL(six, less)                                                                       \
  CHANNEL                                                                                                   \
  THREE_OUTPUTS("r2", "r3", "[r10]", "[r10, r11]", "[r10]", "", TWO_ROWS, less)                             \
  six(THREE_OUTPUTS("r4", "r5", "[r10, r11]", "[r10]", "[r10, r11]", TWO_ROWS, "", less))                   \
  "sub r10, r10, r11, lsl #" six("2") NOT_##six("1") "\n"
#define OUTPUTS(six, less)                                                      \
  OUTPUTS_OF_CHANNEL(six, less)                                                 \
  "add r5, sp, #40\n" "ldm r5, {r2, r3, r4, r5}\n"                              \
  OUTPUTS_OF_CHANNEL(six, less)
/* The same of a direct tile: r0 is what is added to 2^11 times its sums, r1 its multiplier. */
#define DIRECT(sum, by, to)                                                     \
  "add " sum ", r0, " sum by "\n"                                               \
  "smull lr, " sum ", " sum ", r1\n"                                            \
  "ssat " sum ", #8, " sum ", asr #12\n"                                        \
  "strb " sum ", " to "\n"
#define THREE_DIRECT(word, other, first, second, third)                         \
  "lsr r9, " word ", #21\n" "sub r9, " other ", r9, lsl #10\n"                  \
  "lsl r9, r9, #11\n"                                                           \
  "sub " other ", " other ", r9, lsr #11\n"                                      \
  DIRECT(word, ", lsl #11", first) DIRECT("r9", "", second) DIRECT(other, ", lsl #1", third)
/* The same of a tile whose sums have more bits, 2^9 times these. */
#define THREE_WIDE(word, other, first, second, third)                           \
  OPEN(word, other)                                                             \
  DIRECT(word, ", lsr #2", first) DIRECT("r9", ", lsr #2", second) DIRECT(other, ", lsr #1", third)
/* The outputs of both channels. */
#define OF_CHANNEL(six, THREE)                                                  \
  "ldm r12!, {r0, r1, r7}\n"                                                    \
  "add r10, r10, r7\n"                                                          \
  six("add r8, r10, r11\n")                                                     \
  THREE("r2", "r3", "[r10]", "[r10, r11]", "[r10, r11, lsl #1]")                \
  six(THREE("r4", "r5", "[r8, r11, lsl #1]", "[r10, r11, lsl #2]", "[r8, r11, lsl #2]"))
#define ALL(six, THREE)                                                         \
  OF_CHANNEL(six, THREE)                                                        \
  "add r5, sp, #40\n" "ldm r5, {r2, r3, r4, r5}\n"                              \
  OF_CHANNEL(six, THREE)
/* Three sums of a part, stored at r10 or added to those before it there. */
#define STORED(sum, by, at) "lsr " sum ", " sum ", #" by "\n" "str " sum ", [r10, #" at "]\n"
#define STORE_THREE(word, other, at, at_second, at_third) \
  OPEN(word, other) STORED(word, "11", at) STORED("r9", "11", at_second) STORED(other, "10", at_third)
#define ADDED(sum, by, at)                                                      \
  "ldr lr, [r10, #" at "]\n" "add lr, lr, " sum ", lsr #" by "\n" "str lr, [r10, #" at "]\n"
#define ADD_THREE(word, other, at, at_second, at_third) \
  OPEN(word, other) ADDED(word, "11", at) ADDED("r9", "11", at_second) ADDED(other, "10", at_third)
#define OF_MEMORY(at, to) "ldr r2, [r9, #" at "]\n" "add r2, r0, r2, lsl #1\n" OUTPUT("r2", to, LESS)
#define OUTPUTS_OF_MEMORY(six)                                                                              \
  CHANNEL                                                                                                   \
  OF_MEMORY("0", "[r10]") OF_MEMORY("4", "[r10, r11]") TWO_ROWS OF_MEMORY("8", "[r10]")                     \
  six(OF_MEMORY("12", "[r10, r11]") TWO_ROWS OF_MEMORY("16", "[r10]") OF_MEMORY("20", "[r10, r11]"))        \
  "sub r10, r10, r11, lsl #" six("2") NOT_##six("1") "\n"

#define WIDE_AT(at, to) "ldr r2, [r9, #" at "]\n" DIRECT("r2", ", lsl #9", to)
#define WIDE_OF_MEMORY(six)                                                                                 \
  "ldm r12!, {r0, r1, r7}\n"                                                                                \
  "add r10, r10, r7\n"                                                                                      \
  six("add r8, r10, r11\n")                                                                                 \
  WIDE_AT("0", "[r10]") WIDE_AT("4", "[r10, r11]") WIDE_AT("8", "[r10, r11, lsl #1]")                       \
  six(WIDE_AT("12", "[r8, r11, lsl #1]") WIDE_AT("16", "[r10, r11, lsl #2]") WIDE_AT("20", "[r8, r11, lsl #2]"))

/* All channels of six pixels, or of three. In the products words are at r0, weights at r1, sums of a channel in r2 ... r5, of
 * another in r6 ... r9. On the stack: 0, the patch; 4, the output; 8, bytes from pixel to pixel; 12, what the tile is, and
 * 16, its weights; 20, where its second two channels are among what makes outputs, or 0; 24, what the part is; 28, the end
 * of its words; 32, weights behind it; 36, output of the last channel; 40, sums of the second channel; 56, sums of parts. */
#define TILE(name, six, size)                                                                                          \
  __attribute__((naked, noinline)) static void name(                                                                   \
      const void *patch __attribute__((unused)), const uint32_t *stream __attribute__((unused)),                       \
      const int8_t *weights __attribute__((unused)), int8_t *output __attribute__((unused)),                           \
      int32_t row __attribute__((unused))) {                                                                           \
    __asm__ volatile(                                                                                                  \
        ".syntax unified\n"                                                                                            \
        "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"                                                                \
        "ldr r4, [sp, #36]\n"                                                                                          \
        "sub sp, sp, #108\n"                                                                                           \
        "mov r12, r1\n" "mov r1, r2\n"                                                                                 \
        "str r0, [sp]\n" "strd r3, r4, [sp, #4]\n"                                                                     \
        "1:\n" /* a tile: r1, r12 */                                                                                   \
        "strd r12, r1, [sp, #12]\n"                                                                                    \
        "mov r2, #0\n" "ldr r3, [sp, #4]\n"                                                                            \
        "2:\n" /* two of its channels: r1, r2, r3, r12 */                                                              \
        "ldr r0, [sp]\n"                                                                                               \
        "strd r2, r12, [sp, #20]\n" "str r3, [sp, #36]\n"                                                              \
        "3:\n" /* a part: r0, r1, r12 */                                                                               \
        "ldrd r2, r4, [r12]\n"                                                                                         \
        "mov r3, #" size "\n"                                                                                          \
        "adr.w r5, 4f+1\n"                                                                                             \
        "mla r3, r3, r4, r5\n"                                                                                         \
        "add r2, r0, r2, lsl #2\n" "add r2, r2, #16\n"                                                                 \
        "strd r2, r3, [sp, #28]\n"                                                                                     \
        FIRST(six)                                                                                                     \
        "ldr pc, [sp, #32]\n"                                                                                          \
        ".balign 4\n"                                                                                                  \
        "4:\n"                                                                                                         \
        TAPS(six)                                                                                                      \
        "add r1, r1, #64\n"                                                                                            \
        "ldr r10, [sp, #28]\n"                                                                                         \
        "cmp r0, r10\n"                                                                                                \
        "bne.w 4b\n"                                                                                                   \
        "ldrd r11, r12, [sp, #20]\n"                                                                                   \
        "str r1, [sp, #32]\n"                                                                                          \
        "add r1, sp, #40\n" "stm r1, {r6, r7, r8, r9}\n"                                                               \
        "ldr r7, [r12, #8]\n"                                                                                          \
        "add r12, r12, #12\n"                                                                                          \
        "ldr r10, [sp, #36]\n"                                                                                         \
        "tst r7, #3\n"                                                                                                 \
        "bne.w 7f\n"                                                                                                   \
        "add r12, r12, r11\n"                                                                                          \
        "ldr r11, [sp, #8]\n"                                                                                          \
        "cmp r7, #8\n"                                                                                                 \
        "blo.w 9f\n"                                                                                                   \
        "bhi.w 10f\n"                                                                                                  \
        ALL(six, THREE_DIRECT)                                                                                         \
        "11:\n" /* behind two channels of a direct tile: r10, r12 */                                                   \
        "ldr r2, [sp, #20]\n"                                                                                          \
        "cbnz r2, 8f\n"                                                                                                \
        "ldrd r12, r1, [sp, #12]\n"                                                                                    \
        "add r1, r1, #2\n"                                                                                             \
        "mov r2, #24\n" "mov r3, r10\n"                                                                                \
        "b.w 2b\n"                                                                                                     \
        "8:\n"                                                                                                         \
        "ldr r1, [sp, #32]\n" "ldr r2, [r12]\n"                                                                        \
        "sub r1, r1, #2\n"                                                                                             \
        "cmp r2, #0\n"                                                                                                 \
        "bge.w 1b\n"                                                                                                   \
        "add sp, sp, #108\n"                                                                                           \
        "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n"                                                                 \
        "10:\n"                                                                                                        \
        ALL(six, THREE_WIDE)                                                                                           \
        "b.w 11b\n"                                                                                                    \
        "9:\n"                                                                                                         \
        "cmp r7, #4\n"                                                                                                 \
        "beq.w 6f\n"                                                                                                   \
        OUTPUTS(six, KEEP)                                                                                             \
        "5:\n" /* behind two channels: r10, r12 */                                                                     \
        "ldr r2, [sp, #20]\n"                                                                                          \
        "cmp r2, #0\n"                                                                                                 \
        "bne.w 8b\n"                                                                                                   \
        "ldrd r12, r1, [sp, #12]\n"                                                                                    \
        "add r1, r1, #2\n"                                                                                             \
        "mov r2, #40\n" "mov r3, r10\n"                                                                                \
        "b.w 2b\n"                                                                                                     \
        "6:\n"                                                                                                         \
        OUTPUTS(six, LESS)                                                                                             \
        "b.w 5b\n"                                                                                                     \
        "7:\n" /* One of several parts. */                                                                             \
        "add r10, sp, #56\n"                                                                                           \
        "tst r7, #1\n"                                                                                                 \
        "bne.w 7f\n"                                                                                                   \
        STORE_THREE("r2", "r3", "0", "4", "8") six(STORE_THREE("r4", "r5", "12", "16", "20"))                          \
        "add r1, sp, #40\n" "ldm r1, {r2, r3, r4, r5}\n"                                                               \
        STORE_THREE("r2", "r3", "24", "28", "32") six(STORE_THREE("r4", "r5", "36", "40", "44"))                       \
        "b.w 8f\n"                                                                                                     \
        "7:\n"                                                                                                         \
        ADD_THREE("r2", "r3", "0", "4", "8") six(ADD_THREE("r4", "r5", "12", "16", "20"))                              \
        "add r1, sp, #40\n" "ldm r1, {r2, r3, r4, r5}\n"                                                               \
        ADD_THREE("r2", "r3", "24", "28", "32") six(ADD_THREE("r4", "r5", "36", "40", "44"))                           \
        "8:\n"                                                                                                         \
        "ldr r1, [sp, #32]\n"                                                                                          \
        "tst r7, #2\n"                                                                                                 \
        "beq 8f\n"                                                                                                     \
        "str r12, [sp, #24]\n"                                                                                         \
        "b.w 3b\n"                                                                                                     \
        "8:\n"                                                                                                         \
        "add r12, r12, r11\n"                                                                                          \
        "mov r9, r10\n"                                                                                                \
        "ldr r10, [sp, #36]\n" "ldr r11, [sp, #8]\n"                                                                   \
        "cmp r7, #16\n"                                                                                                \
        "bge.w 7f\n"                                                                                                   \
        OUTPUTS_OF_MEMORY(six)                                                                                         \
        "add r9, r9, #24\n"                                                                                            \
        OUTPUTS_OF_MEMORY(six)                                                                                         \
        "b.w 5b\n"                                                                                                     \
        "7:\n"                                                                                                         \
        WIDE_OF_MEMORY(six)                                                                                            \
        "add r9, r9, #24\n"                                                                                            \
        WIDE_OF_MEMORY(six)                                                                                            \
        "b.w 11b\n");                                                                                                  \
  }
TILE(six_pixels, SIX, "48")
TILE(three_pixels, NONE, "28")
#undef SIX
#undef NONE
#undef NOT_SIX
#undef NOT_NONE
#undef WEIGHTS
#undef WORDS
#undef PRODUCTS
#undef ITSELF
#undef R8
#undef R9
#undef TAP
#undef TAPS
#undef FIRST
#undef CHANNEL
#undef OUTPUT
#undef KEEP
#undef LESS
#undef TWO_ROWS
#undef OPEN
#undef TWICE
#undef THREE_OUTPUTS
#undef OUTPUTS_OF_CHANNEL
#undef OUTPUTS
#undef DIRECT
#undef THREE_DIRECT
#undef OF_CHANNEL
#undef ALL
#undef THREE_WIDE
#undef WIDE_AT
#undef WIDE_OF_MEMORY
#undef STORED
#undef STORE_THREE
#undef ADDED
#undef ADD_THREE
#undef OF_MEMORY
#undef OUTPUTS_OF_MEMORY
#undef TILE

#endif
