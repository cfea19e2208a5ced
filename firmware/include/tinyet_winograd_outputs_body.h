/* SPDX-License-Identifier: Apache-2.0 */
/* From the sums of tinyet_conv2d_s8_winograd_f4x4 to outputs: one channel of a tile. The file that includes this has defined
 * TILE, SIDE, SUMS and INVERSE. */
#ifndef TINYET_WINOGRAD_OUTPUTS_BODY_H
#define TINYET_WINOGRAD_OUTPUTS_BODY_H

#include "tinyet_one_product.h"

/* How a channel's outputs are rounded, and where they lie: bytes from row to row and from pixel to pixel. */
typedef struct {
  int32_t multiplier, row, away, shift, offset, pixel;
} channel_outputs;

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2 && defined(__thumb__)
/* Six sums in a column, loaded into r9 and r4 ... r8, become its four outputs, in r9, r5, r4 and r8. r4 and r5 are replaced by
 * their sum and difference, and so are r6 and r7. */
#define COLUMN(m0, m1, m2, m3, m4, m5) \
  "ldr r4, [r1, #" m1 "]\n"            \
  "ldr r5, [r1, #" m2 "]\n"            \
  "ldr r6, [r1, #" m3 "]\n"            \
  "ldr r7, [r1, #" m4 "]\n"            \
  "ldr r8, [r1, #" m5 "]\n"            \
  "ldr r9, [r1, #" m0 "]\n"            \
  "subs r5, r4, r5\n"                  \
  "rsb r4, r5, r4, lsl #1\n"           \
  "subs r7, r6, r7\n"                  \
  "rsb r6, r7, r6, lsl #1\n"           \
  "add r8, r8, r8, lsl #1\n"           \
  "add r9, r9, r4\n"                   \
  "add r9, r9, r6\n"                   \
  "add r4, r4, r6, lsl #2\n"           \
  "add r8, r8, r5\n"                   \
  "add r5, r5, r7, lsl #1\n"           \
  "add r8, r8, r7, lsl #3\n"
/* tinyet_one_product; r6 is free. */
#define OUTPUT(y, to)              \
  "mul " y ", " y ", r3\n"         \
  "smull r6, " y ", " y ", r2\n"   \
  "and r6, r11, " y ", asr #31\n"  \
  "sub " y ", " y ", r6\n"         \
  "add " y ", " y ", lr\n"         \
  "asr " y ", " y ", r12\n"        \
  "ssat " y ", #8, " y "\n"        \
  "strb " y ", [" to "]\n"
#define OUTPUTS                                                              \
  OUTPUT("r9", "r0") OUTPUT("r5", "r0, r10") OUTPUT("r4", "r0, r10, lsl #1") \
  "add r7, r0, r10\n"                                                        \
  OUTPUT("r8", "r7, r10, lsl #1")
/* On the stack: rows of sums, with their columns transformed; lifts; bytes from pixel to pixel. Two columns of outputs at a time,
 * of which the second is lifted. */
__attribute__((naked, noinline)) static void tile_outputs(int8_t *to __attribute__((unused)),
                                                          const uint32_t *sums __attribute__((unused)),
                                                          const channel_outputs *c __attribute__((unused)),
                                                          const uint32_t *lift __attribute__((unused))) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
      "sub sp, sp, #116\n"
      "ldm r3, {r4, r5, r6, r7}\n"
      "add r12, sp, #96\n"
      "ldr r8, [r2, #20]\n"
      "stm r12, {r4, r5, r6, r7, r8}\n"
      "mov r12, sp\n"
      "add lr, r1, #2304\n"
      "1:\n"
      "ldr r4, [r1, #64]\n"
      "ldr r5, [r1, #128]\n"
      "ldr r6, [r1, #192]\n"
      "ldr r7, [r1, #256]\n"
      "ldr r8, [r1, #320]\n"
      "ldr r3, [r1]\n"
      "add r1, r1, #384\n"
      "add r9, r4, r5\n"
      "subs r5, r4, r5\n"
      "add r10, r6, r7\n"
      "subs r7, r6, r7\n"
      "add r8, r8, r8, lsl #1\n"
      "add r3, r3, r9\n"
      "add r3, r3, r10\n"
      "add r4, r5, r7, lsl #1\n"
      "add r6, r9, r10, lsl #2\n"
      "add r8, r8, r5\n"
      "add r7, r8, r7, lsl #3\n"
      "stm r12!, {r3, r4, r6, r7}\n"
      "cmp r1, lr\n"
      "bne 1b\n"
      "ldm r2, {r2, r10, r11, r12, lr}\n"
      "movw r3, #0x8e39\n"
      "movt r3, #0x38e3\n"
      "mov r1, sp\n"
      "2:\n"
      COLUMN("0", "16", "32", "48", "64", "80")
      OUTPUTS
      "ldr r6, [sp, #112]\n"
      "add r0, r0, r6, lsl #1\n"
      COLUMN("8", "24", "40", "56", "72", "88")
      "ldr r6, [r1, #96]\n"
      "ldr r7, [r1, #104]\n"
      "add r4, r4, r6\n"
      "add r8, r8, r7\n"
      OUTPUTS
      "ldr r6, [sp, #112]\n"
      "subs r0, r0, r6\n"
      "adds r1, r1, #4\n"
      "add r6, sp, #8\n"
      "cmp r1, r6\n"
      "bne 2b\n"
      "add sp, sp, #116\n"
      "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
}
#undef COLUMN
#undef OUTPUT
#undef OUTPUTS
#else
/* Six sums in a row or column to four outputs, modulo 2^32. */
static inline __attribute__((always_inline)) void four_of_six(uint32_t *to, uint32_t m0, uint32_t m1, uint32_t m2,
                                                              uint32_t m3, uint32_t m4, uint32_t m5) {
  const uint32_t s = m1 + m2, d = m1 - m2, p = m3 + m4, q = (m3 - m4) << 1;
  to[0] = m0 + s + p;
  to[1] = d + q;
  to[2] = s + (p << 2);
  to[3] = d + (q << 2) + (m5 + (m5 << 1));
}

static inline __attribute__((always_inline)) void store_output(int8_t *to, uint32_t sum, channel_outputs c) {
  const int32_t value = (int32_t)(sum * INVERSE);
  *to = (int8_t)tinyet_one_product(value, c.multiplier, c.offset, c.away, (uint32_t)c.shift);
}

/* lift: what is added to the last two outputs of each of the last two rows. */
static __attribute__((noinline)) void tile_outputs(int8_t *to, const uint32_t *sums, const channel_outputs *channel,
                                                   const uint32_t *lift) {
  const channel_outputs c = *channel; /* which no output can overwrite */
  const int32_t row = c.row;
  uint32_t work[SIDE * TILE];
  for (uint32_t *at = work; at != work + SIDE * TILE; at += TILE, sums += SIDE * SUMS) {
    four_of_six(at, sums[0], sums[SUMS], sums[2 * SUMS], sums[3 * SUMS], sums[4 * SUMS], sums[5 * SUMS]);
  }
  for (const uint32_t *m = work; m != work + TILE; m++, to += c.pixel) {
    uint32_t y[TILE];
    four_of_six(y, m[0], m[TILE], m[2 * TILE], m[3 * TILE], m[4 * TILE], m[5 * TILE]);
    if (m >= work + 2) {
      y[2] += lift[0], y[3] += lift[2];
      lift++;
    }
    store_output(to, y[0], c);
    store_output(to + row, y[1], c);
    store_output(to + 2 * row, y[2], c);
    store_output(to + 3 * row, y[3], c);
  }
}
#endif

#endif
