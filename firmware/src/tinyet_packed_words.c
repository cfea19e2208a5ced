/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_packed_words.h"

typedef uint32_t __attribute__((may_alias)) word;

void tinyet_packed_inputs(uint8_t *to, const int8_t *from, int32_t count) {
  if ((((uintptr_t)to | (uintptr_t)from) & 3u) == 0u) {
    const word *in = (const word *)(const void *)from;
    word *out = (word *)(void *)to;
    for (; count >= 8; count -= 8) {
      const uint32_t a = in[0], b = in[1];
      out[0] = a ^ UINT32_C(0x80808080), out[1] = b ^ UINT32_C(0x80808080);
      in += 2;
      out += 2;
    }
    from = (const int8_t *)(const void *)in;
    to = (uint8_t *)(void *)out;
  }
  for (; count > 0; count--) {
    *to++ = (uint8_t)((uint8_t)*from++ ^ 0x80u);
  }
}

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
typedef struct {
  int32_t blocks, right;
  uint32_t bounds; /* of outputs: high, and low in the next byte */
  int32_t two_sided;
} block_walk;

#define TAP(i)               \
  "ldrb r0, [r6, #" #i "]\n" \
  "ldmia r7!, {r1, r2}\n"    \
  "muls r1, r0, r1\n"        \
  "muls r2, r0, r2\n"        \
  "adds r3, r3, r1\n"        \
  "adds r4, r4, r2\n"
#define ROUND(i, right)       \
  "ldmia r7!, {r1, r2, r3, r4}\n" /* limit, upper, lower, offset */ right \
  "cmp r0, r1\n"              \
  "bhs 2" #i "f\n"            \
  TINYET_THUMB1_SCALED("r0", "r2", "r3", "r4", "r5") \
  "strb r0, [r6, #" #i "]\n"  \
  "3" #i ":\n"
#define ONE_SIDED(i, sum) "mov r0, " sum "\n" ROUND(i, "")
#define TWO_SIDED(i, sum)     \
  "mov r0, " sum "\n"         \
  "ldmia r7!, {r1, r5}\n" /* split, less */ \
  TINYET_THUMB1_BELOW("r0", "r1", "r5") \
  ROUND(i, "subs r4, r4, r5\n" "ldr r5, [sp, #4]\n" "ldr r5, [r5, #4]\n")
/* Outside the range: the sign says which bound it is. */
#define BOUND(i)              \
  "2" #i ":\n"                \
  "ldr r1, [sp, #4]\n"        \
  "ldr r1, [r1, #8]\n"        \
  TINYET_THUMB1_BOUND("r0", "r1") \
  "strb r1, [r6, #" #i "]\n"  \
  "b 3" #i "b\n"

/* Blocks of four outputs each; gives the stream behind them. Inputs at r6, the stream at r7, a run in r3 and r4, sums in
 * r8 ... r11, of which the first of a pair holds the second, too: it is 65536 times that one more than it should be. Then
 * outputs at r6. On the stack inputs and walk. */
__attribute__((naked, noinline)) static const uint32_t *blocks_of(const uint8_t *inputs __attribute__((unused)),
                                                                  const uint32_t *stream __attribute__((unused)),
                                                                  int8_t *output __attribute__((unused)),
                                                                  block_walk *walk __attribute__((unused))) {
  __asm__ volatile(
      TINYET_THUMB1_ENTRY("")
      "subs r0, r0, #16\n"
      "mov r7, r1\n"
      "mov r1, r3\n"
      "push {r0, r1}\n"
      "mov r12, r2\n"
      "1:\n"
      "ldmia r7!, {r0, r1, r2, r3}\n"
      "mov r8, r0\n"
      "mov r9, r1\n"
      "mov r10, r2\n"
      "mov r11, r3\n"
      "ldr r6, [sp]\n"
      "b 2f\n"
      TAP(0) TAP(1) TAP(2) TAP(3) TAP(4) TAP(5) TAP(6) TAP(7)
      TAP(8) TAP(9) TAP(10) TAP(11) TAP(12) TAP(13) TAP(14) TAP(15)
      "add r8, r3\n"
      "lsrs r3, r3, #16\n"
      "add r9, r3\n"
      "add r10, r4\n"
      "lsrs r4, r4, #16\n"
      "add r11, r4\n"
      "2:\n"
      "ldmia r7!, {r0, r1, r3, r4}\n"
      "adds r6, r6, r1\n"
      "add pc, r0\n"
      "nop\n" /* the program counter is two instructions ahead: there it goes on behind the last run */
      "subs r7, r7, #8\n" /* two words too many have been read */
      "mov r0, r9\n"
      "lsls r0, r0, #16\n"
      "mov r1, r8\n"
      "subs r1, r1, r0\n"
      "mov r8, r1\n"
      "mov r0, r11\n"
      "lsls r0, r0, #16\n"
      "mov r1, r10\n"
      "subs r1, r1, r0\n"
      "mov r10, r1\n"
      "mov r6, r12\n"
      "ldr r5, [sp, #4]\n"
      "ldr r0, [r5, #12]\n"
      "ldr r5, [r5, #4]\n"
      "cmp r0, #0\n"
      "bne 5f\n"
      ONE_SIDED(0, "r8") ONE_SIDED(1, "r9") ONE_SIDED(2, "r10") ONE_SIDED(3, "r11")
      "4:\n"
      "adds r6, r6, #4\n"
      "mov r12, r6\n"
      "ldr r5, [sp, #4]\n"
      "ldr r0, [r5]\n"
      "subs r0, r0, #1\n"
      "str r0, [r5]\n"
      "beq 6f\n"
      "b 1b\n"
      BOUND(0) BOUND(1) BOUND(2) BOUND(3)
      "6:\n"
      "mov r0, r7\n"
      "add sp, sp, #8\n"
      TINYET_THUMB1_RETURN("")
      "5:\n"
      TWO_SIDED(0, "r8") TWO_SIDED(1, "r9") TWO_SIDED(2, "r10") TWO_SIDED(3, "r11")
      "b 4b\n"
      BOUND(0) BOUND(1) BOUND(2) BOUND(3));
}
#undef TAP
#undef ROUND
#undef ONE_SIDED
#undef TWO_SIDED
#undef BOUND

void tinyet_packed_pixel(const uint8_t *inputs, int8_t *output, const tinyet_packed_words *layer) {
  const uint32_t *stream = layer->stream;
  const int32_t blocks = layer->out_c / 4, rest = layer->out_c & 3;
  block_walk walk = {blocks, layer->right,
                     ((uint32_t)layer->clamp_high & 255u) | ((uint32_t)layer->clamp_low & 255u) << 8, layer->two_sided};
  if (blocks != 0) {
    stream = blocks_of(inputs, stream, output, &walk);
  }
  if (rest != 0) {
    int8_t last[4];
    walk.blocks = 1;
    (void)blocks_of(inputs, stream, last, &walk);
    memcpy(output + 4 * blocks, last, (size_t)rest);
  }
}
#else
/* The four sums of a block; gives the stream behind its last run. */
static inline const TINYET_ROM uint32_t *block_sums(const uint8_t *x, const TINYET_ROM uint32_t *w, uint32_t sums[4]) {
  uint32_t s0 = w[0], s1 = w[1], s2 = w[2], s3 = w[3];
  int32_t taps = (int32_t)w[5];
  w += 4;
  for (; taps != 0; taps = (int32_t)w[1]) {
    uint32_t a = w[2], b = w[3];
    w += 4;
#define TAP(i)                                            \
  do {                                                    \
    const uint32_t input = x[i];                          \
    a += input * w[2 * (i)], b += input * w[2 * (i) + 1]; \
  } while (0)
    for (; taps >= 4; taps -= 4) {
      TAP(0);
      TAP(1);
      TAP(2);
      TAP(3);
      x += 4;
      w += 8;
    }
    for (; taps > 0; taps--) {
      TAP(0);
      x++;
      w += 2;
    }
#undef TAP
    s0 += a, s1 += a >> 16;
    s2 += b, s3 += b >> 16;
  }
  sums[0] = s0 - (s1 << 16), sums[1] = s1, sums[2] = s2 - (s3 << 16), sums[3] = s3;
  return w + 2;
}

void tinyet_packed_pixel(const uint8_t *inputs, int8_t *output, const tinyet_packed_words *layer) {
  const TINYET_ROM uint32_t *stream = layer->stream;
  const int32_t right = layer->right, step = layer->two_sided != 0 ? 6 : 4;
  const int8_t low = (int8_t)layer->clamp_low, high = (int8_t)layer->clamp_high;
  for (int32_t left = layer->out_c; left > 0; left -= 4) {
    uint32_t sums[4];
    const TINYET_ROM uint32_t *f = block_sums(inputs, stream, sums);
    stream = f + 4 * step;
    const int32_t count = left < 4 ? left : 4;
    for (int32_t i = 0; i < count; i++, f += step) {
      output[i] = tinyet_two_products(sums[i], f, right, step == 6 ? 1 : 0, low, high);
    }
    output += 4;
  }
}
#endif
