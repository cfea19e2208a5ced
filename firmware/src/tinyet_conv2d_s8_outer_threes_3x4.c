/* SPDX-License-Identifier: Apache-2.0 */
#define SECOND_IN_BOTH
#include "tinyet_conv2d_outer.h"
#include "tinyet_straight.h"
#include "tinyet_windows_in_threes_body.h"
#undef SECOND_IN_BOTH

enum { PIXELS = 3 };

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2 && defined(__thumb__)
/* Words of inputs are at r0, of weights at r1. Sums: of two channels in r6 ... r9, of two more in r10 ... r12 and lr. */
#define PRODUCTS                                                          \
  "smlal r6, r7, r2, r4\n" "smlal r8, r9, r3, r4\n"                       \
  "smlal r10, r11, r2, r5\n" "smlal r12, lr, r3, r5\n"
#ifdef __ARM_FEATURE_DSP
/* Neighbouring loads that do not write back overlap, where LDRD does not. A tap is 32 bytes. */
#define TAP(i)                                                            \
  "ldr.w r2, [r0, #8*" #i "]\n" "ldr.w r3, [r0, #8*" #i "+4]\n"           \
  "ldr.w r4, [r1, #8*" #i "]\n" "ldr.w r5, [r1, #8*" #i "+4]\n" PRODUCTS
#define ENTRY "sub r0, r0, r3\n" "sub r1, r1, r3\n" "add r3, r4, r3, lsl #2\n"
#define ONWARD "add r0, r0, #256\n" "add r1, r1, #256\n"
#else
/* A tap is 24 bytes. */
#define TAP(i) "ldrd r2, r3, [r0], #8\n" "ldrd r4, r5, [r1], #8\n" PRODUCTS
#define ENTRY "add r3, r3, r3, lsl #1\n" "add r3, r3, r4\n"
#define ONWARD ""
#endif
#define FOUR_TAPS(a, b, c, d) TAP(a) TAP(b) TAP(c) TAP(d)
/* Six sums of two channels: those of the first in r6, r2, r8 with more above 21 bits, where it is not r2; of the second in r3,
 * the same, r7, r9. What is known of a lower place is subtracted from the place above, with what it carries. */
#define OPEN                                                              \
  "ubfx r2, r8, #0, #21\n"                                                \
  "subs r6, r6, r8, lsl #21\n" "sbc r7, r7, r2, lsr #11\n"                \
  "lsr r3, r6, #21\n" "add r3, r3, r7, lsl #11\n"                         \
  "lsr r7, r7, #10\n"                                                     \
  "subs r8, r8, r7, lsl #21\n" "sbc r9, r9, r7, lsr #11\n"                \
  "lsr r8, r8, #21\n" "add r8, r8, r9, lsl #11\n"                         \
  "lsr r9, r9, #10\n"
#define SUMS OPEN "ubfx r6, r6, #0, #21\n" "ubfx r8, r8, #0, #21\n" "ubfx r3, r3, #0, #21\n"
/* Sums of the parts before, as STM stores six. */
#define ADD_TWO(from, at, first, second)                                  \
  "ldrd r12, lr, [" from ", #" at "]\n" "add " first ", " first ", r12\n" "add " second ", " second ", lr\n"
#define ADD_BEFORE(from, at)                                              \
  ADD_TWO(from, at, "r2", "r3") ADD_TWO(from, at "+8", "r6", "r7") ADD_TWO(from, at "+16", "r8", "r9")
/* Three outputs of a direct tile: r0 is what is added to a sum times 2^by, r4 the multiplier. Outputs are at r10, from pixel to
 * pixel r11. */
#define DIRECT(sum, by, to)                                               \
  "add " sum ", r0, " sum ", lsl #" by "\n"                               \
  "smull lr, " sum ", " sum ", r4\n"                                      \
  "ssat " sum ", #8, " sum ", asr #12\n"                                  \
  "strb " sum ", " to "\n"
#define THREE_DIRECT(first, second, third, by)                            \
  "ldm r5!, {r0, r4, r12}\n"                                              \
  "add r10, r10, r12\n"                                                   \
  DIRECT(first, by, "[r10]") DIRECT(second, by, "[r10, r11]") DIRECT(third, by, "[r10, r11, lsl #1]")
#define SIX_DIRECT(by) THREE_DIRECT("r6", "r2", "r8", by) THREE_DIRECT("r3", "r7", "r9", by)
/* Others: r0 is twice what is added to a sum, r1 half its multiplier, which is even; place in r4, shift in r12, zero in lr. */
#define OUTPUT(sum, to)                                                   \
  "add " sum ", r0, " sum ", lsl #1\n"                                    \
  "smull r5, " sum ", " sum ", r1\n"                                      \
  "sub r5, " sum ", lr\n" "add " sum ", " sum ", r5, asr #31\n"           \
  "asr " sum ", " sum ", r12\n"                                           \
  "sub " sum ", " sum ", r4\n"                                            \
  "ssat " sum ", #8, " sum "\n"                                           \
  "strb " sum ", " to "\n"
#define THREE_OUTPUTS(first, second, third)                               \
  "ldm r5!, {r0, r1, r4, r12, lr}\n"                                      \
  "str r5, [sp, #20]\n"                                                   \
  "add r10, r10, r12\n"                                                   \
  "and r12, r4, #31\n" "sub r4, r4, r12\n" "add r4, r4, #128\n"           \
  "lsl r0, r0, #1\n" "lsr r1, r1, #1\n"                                   \
  OUTPUT(first, "[r10]") OUTPUT(second, "[r10, r11]") OUTPUT(third, "[r10, r11, lsl #1]")

/* All channels of three pixels. On the stack: 0, sums of the second two channels; 16, the end of a part's words; 20, the
 * stream behind them; 24, the output; 28, bytes from pixel to pixel; 32, the patch; 36, what the part is; 40, weights behind
 * it; 44, where sums of parts are of the two channels in hand; 48, these sums. */
__attribute__((naked, noinline)) static void three_pixels(
    const void *patch __attribute__((unused)), const uint32_t *stream __attribute__((unused)),
    const uint32_t *weights __attribute__((unused)), int8_t *output __attribute__((unused)),
    int32_t row __attribute__((unused))) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
      "ldr r4, [sp, #36]\n"
      "sub sp, sp, #100\n"
      "str r0, [sp, #32]\n" "strd r3, r4, [sp, #24]\n"
      "mov r5, r1\n" "mov r1, r2\n"
      "1:\n" /* a tile: r1, r5 */
      "ldr r0, [sp, #32]\n"
      "2:\n" /* a part: r0, r1, r5 */
      "ldrd r2, r3, [r5], #12\n"
      "add r2, r2, r0\n"
      "strd r2, r5, [sp, #16]\n"
      "adr.w r4, 4f+1\n"
      ENTRY
      "adr.w r2, 3f\n"
      "ldm r2, {r6, r7, r8, r9, r10, r11, r12, lr}\n"
      "bx r3\n"
      ".balign 4\n"
      "3:\n"
      ".word 0x100000, 0x40000400, 0x100000, 0x40000400, 0x100000, 0x40000400, 0x100000, 0x40000400\n"
      "4:\n"
      FOUR_TAPS(0, 1, 2, 3) FOUR_TAPS(4, 5, 6, 7) FOUR_TAPS(8, 9, 10, 11) FOUR_TAPS(12, 13, 14, 15)
      FOUR_TAPS(16, 17, 18, 19) FOUR_TAPS(20, 21, 22, 23) FOUR_TAPS(24, 25, 26, 27) FOUR_TAPS(28, 29, 30, 31)
      ONWARD
      "ldr r2, [sp, #16]\n"
      "cmp r0, r2\n"
      "bne.w 4b\n"
      "stm sp, {r10, r11, r12, lr}\n"
      "ldr r5, [sp, #20]\n"
      "ldr r4, [r5, #-4]\n"
      "cmp r4, #8\n"
      "bne.w 5f\n"
      "ldrd r10, r11, [sp, #24]\n"
      OPEN SIX_DIRECT("11")
      "ldm sp, {r6, r7, r8, r9}\n"
      OPEN SIX_DIRECT("11")
      "6:\n" /* behind a tile: r1, r5 */
      "ldr r2, [r5]\n"
      "cmp r2, #0\n"
      "bge.w 1b\n"
      "add sp, sp, #100\n"
      "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n"
      "5:\n"
      "tst r4, #2\n"
      "beq 7f\n"
      "add r12, sp, #48\n" /* A part that others follow: r0 and r1 are where these begin. */
      "tst r4, #1\n"
      "bne 8f\n"
      SUMS "stm r12!, {r2, r3, r6, r7, r8, r9}\n"
      "ldm sp, {r6, r7, r8, r9}\n"
      SUMS "stm r12, {r2, r3, r6, r7, r8, r9}\n"
      "b.w 2b\n"
      "8:\n"
      SUMS ADD_BEFORE("sp", "48")
      "add r12, sp, #48\n"
      "stm r12, {r2, r3, r6, r7, r8, r9}\n"
      "ldm sp, {r6, r7, r8, r9}\n"
      SUMS ADD_BEFORE("sp", "72")
      "add r12, sp, #72\n"
      "stm r12, {r2, r3, r6, r7, r8, r9}\n"
      "b.w 2b\n"
      "7:\n"
      "ldrd r10, r11, [sp, #24]\n"
      "cmp r4, #16\n"
      "blt.w 5f\n"
      "str r4, [sp, #36]\n"
      SUMS
      "cmp r4, #16\n"
      "beq 8f\n"
      ADD_BEFORE("sp", "48")
      "8:\n"
      SIX_DIRECT("9")
      "ldm sp, {r6, r7, r8, r9}\n"
      SUMS
      "ldr r4, [sp, #36]\n"
      "cmp r4, #16\n"
      "beq 8f\n"
      ADD_BEFORE("sp", "72")
      "8:\n"
      SIX_DIRECT("9")
      "b.w 6b\n"
      "5:\n" /* Not direct. */
      "strd r4, r1, [sp, #36]\n"
      "add r1, sp, #48\n"
      "7:\n" /* two channels: r1, r4 ... r11 */
      "str r1, [sp, #44]\n"
      SUMS
      "tst r4, #1\n"
      "beq 8f\n"
      ADD_BEFORE("r1", "0")
      "8:\n"
      THREE_OUTPUTS("r6", "r2", "r8")
      "ldr r5, [sp, #20]\n"
      THREE_OUTPUTS("r3", "r7", "r9")
      "ldr r5, [sp, #20]\n"
      "ldr r4, [sp, #36]\n"
      "ldr r1, [sp, #44]\n"
      "add r2, sp, #48\n"
      "cmp r1, r2\n"
      "add r1, r1, #24\n"
      "ldm sp, {r6, r7, r8, r9}\n"
      "beq.w 7b\n"
      "ldr r1, [sp, #40]\n"
      "b.w 6b\n");
}
#undef PRODUCTS
#undef TAP
#undef ENTRY
#undef ONWARD
#undef FOUR_TAPS
#undef OPEN
#undef SUMS
#undef ADD_TWO
#undef ADD_BEFORE
#undef DIRECT
#undef THREE_DIRECT
#undef SIX_DIRECT
#undef OUTPUT
#undef THREE_OUTPUTS

static void outputs(const word *patch, int8_t *output, int32_t row, int32_t count,
                    const tinyet_conv2d_s8_outer_threes_3x4_params *params) {
  (void)count;
  three_pixels(patch, params->outputs.stream, params->weights, output, row);
}
#else
/* Words that make outputs of a channel's sums, of which direct ones are shifted to the upper end of a word, or a little less far
 * where they have more bits. */
enum { CHANNELS = 4, ROUNDING = 5, DIRECT = 3, IS_DIRECT = 8, IS_WIDE = 16, UPPER = 32 - FIELD, BELOW = 2, SHIFT = 12 };

/* 2^20 for each sum of a part: all that they add up to is positive. */
#define BEFORE ((UINT64_C(1) << (FIELD - 1)) + (UINT64_C(1) << 2 * FIELD) + (UINT64_C(1) << (3 * FIELD - 1)))

/* Of two channels and three pixels. */
static void add_part(uint32_t sums[2][PIXELS], const word *x, const TINYET_ROM uint32_t *weights, int32_t taps) {
  const uint32_t mask = (UINT32_C(1) << FIELD) - 1u;
  uint64_t first = BEFORE, second = BEFORE;
  for (; taps > 0; taps--) {
    const int64_t weight = (int32_t)*weights;
    first += (uint64_t)((int32_t)x[0] * weight);
    second += (uint64_t)((int32_t)x[1] * weight);
    x += STEP;
    weights += CHANNELS / 2;
  }
  const uint32_t between = (uint32_t)second & mask;
  first -= (uint64_t)between << FIELD;
  const uint32_t last = (uint32_t)(first >> 2 * FIELD);
  second -= (uint64_t)last << FIELD;
  sums[0][0] += (uint32_t)first & mask;
  sums[0][1] += between;
  sums[0][2] += (uint32_t)(second >> FIELD) & mask;
  sums[1][0] += (uint32_t)(first >> FIELD) & mask;
  sums[1][1] += last;
  sums[1][2] += (uint32_t)(second >> 2 * FIELD);
}

static void outputs(const word *patch, int8_t *output, int32_t row, int32_t count,
                    const tinyet_conv2d_s8_outer_threes_3x4_params *params) {
  const TINYET_ROM uint32_t *part = params->outputs.stream, *weights = params->weights;
  while ((part[0] >> 31) == 0) {
    uint32_t sums[CHANNELS][PIXELS] = {{0}};
    const word *x = patch;
    for (int32_t more = 1; more != 0;) {
      const int32_t taps = (int32_t)(part[0] / 8);
      add_part(sums, x, weights, taps);
      add_part(sums + 2, x, weights + 1, taps);
      more = (int32_t)(part[2] & 2u);
      weights += CHANNELS / 2 * taps;
      x += STEP * taps;
      part += 3;
    }
    const int32_t direct = (part[-1] & (IS_DIRECT | IS_WIDE)) != 0;
    const uint32_t upper = (part[-1] & IS_WIDE) != 0 ? UPPER - BELOW : UPPER;
    int8_t *to = output;
    for (int32_t c = 0; c < CHANNELS; c++) {
      to += (int32_t)(direct ? part[2] : part[3]);
      for (int32_t i = 0; i < count; i++) {
        if (direct) {
          const uint32_t sum = (sums[c][i] << upper) + part[0];
          const int32_t value = tinyet_upper_half((int32_t)sum, (int32_t)part[1]) >> SHIFT;
          to[i * row] = (int8_t)(value < -128 ? -128 : value > 127 ? 127 : value);
        } else {
          const int32_t place = (int32_t)(part[2] & ~(uint32_t)127) + 128;
          to[i * row] = tinyet_straight((int32_t)(sums[c][i] + part[0]), part[1], part[2] & 31u, place, (int32_t)part[4]);
        }
      }
      part += direct ? DIRECT : ROUNDING;
    }
  }
}
#undef BEFORE
#endif

#define KERNEL tinyet_conv2d_s8_outer_threes_3x4
#define PARAMS tinyet_conv2d_s8_outer_threes_3x4_params
#define IS_TILE(count) ((count) == PIXELS)
#define PADDING params->outputs.padding
#define CLAMP(values, count) \
  tinyet_clamp_outputs(values, count, params->outputs.clamp_low, params->outputs.clamp_high)
#include "tinyet_conv2d_threes_body.h"
