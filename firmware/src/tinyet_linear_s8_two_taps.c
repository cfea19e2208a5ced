/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_two_taps.h"

#if defined(__riscv) && __riscv_xlen == 32 && defined(__riscv_mul) && !defined(__riscv_32e)
#define TINYET_HIGH_HALF 1
#else
#define TINYET_HIGH_HALF 0
#endif

/* Of two taps, as all outputs read them: both inputs, and what makes their products' sum that of weights without 128, with
 * a half of 2^16 in it. Where the high half of a product costs as much as the low one, the second input is multiplied by
 * 2^24, so that weights need not be shifted. */
typedef struct {
  int32_t first, second, before;
} two_inputs;

#define EVEN UINT32_C(0x00FF00FF)

static void table_of(two_inputs *two, const int8_t *input, int32_t depth) {
  for (; depth > 0; depth -= 2, two++) {
    const int32_t first = *input++, second = depth > 1 ? *input++ : 0;
    two->first = first;
    two->second = TINYET_HIGH_HALF ? (int32_t)((uint32_t)second << 24) : second;
    two->before = (int32_t)(UINT32_C(0x8000) - (uint32_t)(first + second) * UINT32_C(0x800080));
  }
}

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2 && defined(__thumb__)
#define WORD(weights, both, high)         \
  "and lr, r2, " weights "\n"             \
  "mla r3, r8, lr, r10\n"                 \
  "and lr, r2, " weights ", lsr #8\n"     \
  "mla r3, r9, lr, r3\n"                  \
  "add " both ", " both ", r3\n"          \
  "add " high ", " high ", r3, asr #16\n"
#define TWO_TAPS               \
  "ldm r0!, {r8, r9, r10}\n"   \
  "ldm r1!, {r11, r12}\n"      \
  WORD("r11", "r4", "r5")      \
  WORD("r12", "r6", "r7")

/* Four outputs' sums; gives the weights behind theirs. Inputs at r0, weights at r1, sums in r4 ... r7. */
__attribute__((naked, noinline)) static const uint32_t *four_of(const two_inputs *two __attribute__((unused)),
                                                                const uint32_t *weights __attribute__((unused)),
                                                                const two_inputs *end __attribute__((unused)),
                                                                uint32_t sums[4] __attribute__((unused))) {
  __asm__ volatile(
      "push {r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
      "ldm r3, {r4, r5, r6, r7}\n"
      "subs r3, r2, r0\n"
      "mov r2, #0x00FF00FF\n"
      "lsrs r3, r3, #3\n" /* an odd number of twelves */
      "bcs 2f\n"
      "1:\n"
      TWO_TAPS
      "2:\n"
      TWO_TAPS
      "ldr r3, [sp]\n"
      "cmp r0, r3\n"
      "bne 1b\n"
      "mov r0, r1\n"
      "pop {r2, r3}\n"
      "stm r3, {r4, r5, r6, r7}\n"
      "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
}
#undef WORD
#undef TWO_TAPS
#elif defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
#define WORD(both, high)    \
  "ldmia r7!, {r3}\n"       \
  "lsrs r4, r3, #8\n"       \
  "ands r3, r3, r5\n"       \
  "ands r4, r4, r5\n"       \
  "muls r3, r0, r3\n"       \
  "muls r4, r1, r4\n"       \
  "adds r3, r3, r4\n"       \
  "adds r3, r3, r2\n"       \
  "add " both ", r3\n"      \
  "asrs r3, r3, #16\n"      \
  "add " high ", r3\n"
#define TWO_TAPS              \
  "ldmia r6!, {r0, r1, r2}\n" \
  WORD("r8", "r9")            \
  WORD("r10", "r11")

/* Four outputs' sums; gives the weights behind theirs. Inputs at r6, weights at r7, sums in r8 ... r11. */
__attribute__((naked, noinline)) static const uint32_t *four_of(const two_inputs *two __attribute__((unused)),
                                                                const uint32_t *weights __attribute__((unused)),
                                                                const two_inputs *end __attribute__((unused)),
                                                                uint32_t sums[4] __attribute__((unused))) {
  __asm__ volatile(
      TINYET_THUMB1_ENTRY("r3, ")
      "mov r6, r0\n"
      "mov r7, r1\n"
      "mov r12, r2\n"
      "ldmia r3!, {r0, r1, r4, r5}\n"
      "mov r8, r0\n"
      "mov r9, r1\n"
      "mov r10, r4\n"
      "mov r11, r5\n"
      "movs r5, #255\n"
      "lsls r4, r5, #16\n"
      "orrs r5, r5, r4\n"
      "subs r2, r2, r6\n"
      "lsrs r2, r2, #3\n" /* an odd number of twelves */
      "bcs 2f\n"
      "1:\n"
      TWO_TAPS
      "2:\n"
      TWO_TAPS
      "cmp r6, r12\n"
      "bne 1b\n"
      "mov r0, r7\n"
      "pop {r3}\n"
      "mov r4, r8\n"
      "mov r5, r9\n"
      "mov r6, r10\n"
      "mov r7, r11\n"
      "stmia r3!, {r4, r5, r6, r7}\n"
      TINYET_THUMB1_RETURN(""));
}
#undef WORD
#undef TWO_TAPS
#else
#define WORD(weights, both, high)                                                                    \
  do {                                                                                               \
    const uint32_t word = (weights), even = word & EVEN;                                             \
    const uint32_t odd = TINYET_HIGH_HALF                                                            \
                             ? (uint32_t)(int32_t)((int64_t)two->second * (int64_t)(word - even) >> 32) \
                             : (uint32_t)two->second * (word >> 8 & EVEN);                           \
    const uint32_t run = (uint32_t)two->first * even + odd + (uint32_t)two->before;                  \
    both += run;                                                                                     \
    high += (uint32_t)((int32_t)run >> 16);                                                          \
  } while (0)

/* Four outputs' sums; gives the weights behind theirs. */
static const TINYET_ROM uint32_t *four_of(const two_inputs *two, const TINYET_ROM uint32_t *w, const two_inputs *end,
                                          uint32_t sums[4]) {
  uint32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
  for (; two != end; two++, w += 2) {
    WORD(w[0], a, b);
    WORD(w[1], c, d);
  }
  sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
  return w;
}
#undef WORD
#endif

#if TINYET_HIGH_HALF
#define WORD(weights, both, high)      \
  "lw s1, " weights "\n"               \
  "and s2, s1, s0\n"                   \
  "sub s1, s1, s2\n"                   \
  "mul s2, s2, t0\n"                   \
  "mulhsu s1, t1, s1\n"                \
  "add s2, s2, t2\n"                   \
  "add s2, s2, s1\n"                   \
  "add " both ", " both ", s2\n"       \
  "srai s2, s2, 16\n"                  \
  "add " high ", " high ", s2\n"
#define TWO_TAPS(first, second, before, even, odd) \
  "lw t0, " #first "(a0)\n"            \
  "lw t1, " #second "(a0)\n"           \
  "lw t2, " #before "(a0)\n"           \
  WORD(#even "(a1)", "a5", "a6")       \
  WORD(#odd "(a1)", "a7", "t3")        \
  WORD(#even "(a3)", "t4", "t5")       \
  WORD(#odd "(a3)", "t6", "s3")

/* The same of eight outputs, whose two blocks are `apart` bytes from each other. Sums in a5 ... a7 and t3 ... s3. */
__attribute__((naked, noinline)) static const uint32_t *eight_of(const two_inputs *two __attribute__((unused)),
                                                                 const uint32_t *weights __attribute__((unused)),
                                                                 const two_inputs *end __attribute__((unused)),
                                                                 int32_t apart __attribute__((unused)),
                                                                 uint32_t sums[8] __attribute__((unused))) {
  __asm__ volatile(
      "addi sp, sp, -16\n"
      "sw s0, 0(sp)\n" "sw s1, 4(sp)\n" "sw s2, 8(sp)\n" "sw s3, 12(sp)\n"
      "lw a5, 0(a4)\n" "lw a6, 4(a4)\n" "lw a7, 8(a4)\n" "lw t3, 12(a4)\n"
      "lw t4, 16(a4)\n" "lw t5, 20(a4)\n" "lw t6, 24(a4)\n" "lw s3, 28(a4)\n"
      "add a3, a3, a1\n"
      "li s0, 0x00FF00FF\n"
      "sub s1, a2, a0\n"
      "andi s1, s1, 4\n" /* an odd number of twelves */
      "beqz s1, 1f\n"
      "addi a0, a0, -12\n" "addi a1, a1, -8\n" "addi a3, a3, -8\n"
      "j 2f\n"
      "1:\n"
      TWO_TAPS(0, 4, 8, 0, 4)
      "2:\n"
      TWO_TAPS(12, 16, 20, 8, 12)
      "addi a0, a0, 24\n" "addi a1, a1, 16\n" "addi a3, a3, 16\n"
      "bne a0, a2, 1b\n"
      "sw a5, 0(a4)\n" "sw a6, 4(a4)\n" "sw a7, 8(a4)\n" "sw t3, 12(a4)\n"
      "sw t4, 16(a4)\n" "sw t5, 20(a4)\n" "sw t6, 24(a4)\n" "sw s3, 28(a4)\n"
      "mv a0, a3\n"
      "lw s0, 0(sp)\n" "lw s1, 4(sp)\n" "lw s2, 8(sp)\n" "lw s3, 12(sp)\n"
      "addi sp, sp, 16\n"
      "ret\n");
}
#undef WORD
#undef TWO_TAPS
#endif

/* Outputs of a block's sums; gives the stream behind it. */
static inline const TINYET_ROM uint32_t *rounded(uint32_t sums[4], const TINYET_ROM uint32_t *f, int8_t *output,
                                                 int32_t count, int32_t right, int32_t two_sided, int8_t low,
                                                 int8_t high) {
  const int32_t step = two_sided != 0 ? 6 : 4;
  f += 4;
  sums[0] -= sums[1] << 16;
  sums[2] -= sums[3] << 16;
  if (count < 4) {
    for (int32_t i = 0; i < count; i++) {
      output[i] = tinyet_two_products(sums[i], f + i * step, right, two_sided, low, high);
    }
  } else if (step == 6) {
    output[0] = tinyet_two_products(sums[0], f, right, 1, low, high);
    output[1] = tinyet_two_products(sums[1], f + 6, right, 1, low, high);
    output[2] = tinyet_two_products(sums[2], f + 12, right, 1, low, high);
    output[3] = tinyet_two_products(sums[3], f + 18, right, 1, low, high);
  } else {
    output[0] = tinyet_two_products(sums[0], f, right, 0, low, high);
    output[1] = tinyet_two_products(sums[1], f + 4, right, 0, low, high);
    output[2] = tinyet_two_products(sums[2], f + 8, right, 0, low, high);
    output[3] = tinyet_two_products(sums[3], f + 12, right, 0, low, high);
  }
  return f + 4 * step;
}

void tinyet_linear_s8_two_taps(const int8_t *input, int8_t *output, void *scratch,
                               const tinyet_linear_s8_two_taps_params *params) {
  const int32_t depth = params->depth, pairs = (depth + 1) / 2;
  const int32_t right = params->words.right, two_sided = params->words.two_sided;
  const int8_t low = (int8_t)params->words.clamp_low, high = (int8_t)params->words.clamp_high;
  two_inputs *const table = (two_inputs *)scratch;
  for (int32_t row = 0; row < params->rows; row++) {
    const TINYET_ROM uint32_t *f = params->words.stream, *weights = params->weights;
    table_of(table, input, depth);
    for (int32_t left = params->words.out_c; left > 0;) {
      uint32_t sums[8];
      sums[0] = f[0], sums[1] = f[1], sums[2] = f[2], sums[3] = f[3];
      int32_t count = left < 4 ? left : 4;
#if TINYET_HIGH_HALF
      if (left >= 8) {
        const uint32_t *const next = f + (two_sided != 0 ? 4 + 4 * 6 : 4 + 4 * 4);
        sums[4] = next[0], sums[5] = next[1], sums[6] = next[2], sums[7] = next[3];
        weights = eight_of(table, weights, table + pairs, 8 * pairs, sums);
        count = 8;
      } else
#endif
      {
        weights = four_of(table, weights, table + pairs, sums);
      }
      left -= count;
      for (uint32_t *each = sums; count > 0; each += 4, output += 4, count -= 4) {
        f = rounded(each, f, output, count, right, two_sided, low, high);
      }
      output += count;
    }
    input += depth;
  }
}
