/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
typedef struct {
  int32_t count, a_factor, b_factor, offset, shift, low, high;
} one_row;

#define VALUE(i)            \
  "ldrsb r4, [r0, r3]\n"    \
  "ldrsb r5, [r1, r3]\n"    \
  "muls r4, r6, r4\n"       \
  "muls r5, r7, r5\n"       \
  "adds r4, r4, r5\n"       \
  "add r4, r8\n"            \
  "mov r5, r9\n"            \
  "asrs r4, r4, r5\n"       \
  "cmp r4, r10\n"           \
  "blt 4" #i "f\n"          \
  "cmp r4, r11\n"           \
  "bgt 5" #i "f\n"          \
  "6" #i ":\n"              \
  "strb r4, [r2, r3]\n"     \
  "adds r3, r3, #1\n"
#define BOUND(i)            \
  "4" #i ":\n"              \
  "mov r4, r10\n"           \
  "b 6" #i "b\n"            \
  "5" #i ":\n"              \
  "mov r4, r11\n"           \
  "b 6" #i "b\n"

/* Elements of operands of steps of 1, from the ends of both and of the output: count is less than zero for them. An odd
 * one is the first. */
__attribute__((naked, noinline)) static void neighbours(const int8_t *a_end __attribute__((unused)),
                                                        const int8_t *b_end __attribute__((unused)),
                                                        int8_t *end __attribute__((unused)),
                                                        const one_row *r __attribute__((unused))) {
  __asm__ volatile(
      TINYET_THUMB1_ENTRY("")
      "ldr r4, [r3, #12]\n"
      "mov r8, r4\n"
      "ldr r4, [r3, #16]\n"
      "mov r9, r4\n"
      "ldr r4, [r3, #20]\n"
      "mov r10, r4\n"
      "ldr r4, [r3, #24]\n"
      "mov r11, r4\n"
      "ldr r6, [r3, #4]\n"
      "ldr r7, [r3, #8]\n"
      "ldr r3, [r3]\n"
      "lsrs r4, r3, #1\n"
      "bcs 2f\n"
      "1:\n"
      VALUE(0)
      "2:\n"
      VALUE(1)
      "bmi 1b\n" /* not yet zero */
      TINYET_THUMB1_RETURN("")
      BOUND(0) BOUND(1));
}
#undef VALUE
#undef BOUND
#endif

static TINYET_NOINLINE void tinyet_affine_row(const int8_t *a, const int8_t *b, int8_t *output,
                                const tinyet_affine_s8_params *params) {
  const int32_t a_factor = params->a_factor, b_factor = params->b_factor;
  const int32_t offset = params->offset, shift = params->shift;
  const int32_t low = params->clamp_low, high = params->clamp_high;
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
  if (params->shape.a_step == 1 && params->shape.b_step == 1) {
    const int32_t count = params->shape.row;
    const one_row r = {-count, a_factor, b_factor, offset, shift, low, high};
    neighbours(a + count, b + count, output + count, &r);
    return;
  }
#elif !defined(__AVR__)
  if (params->shape.a_step == 1 && params->shape.b_step == 1) {
    int32_t left = params->shape.row;
/* The bounds one after the other, each a branch to a move: of a choice of three GCC would make moves in any case. */
#define VALUE(i)                                                           \
  do {                                                                     \
    int32_t value = (offset + a[i] * a_factor + b[i] * b_factor) >> shift; \
    if (__builtin_expect(value < low, 0)) {                                \
      value = low;                                                         \
      __asm__("" : "+r"(value));                                           \
    }                                                                      \
    if (__builtin_expect(value > high, 0)) {                               \
      value = high;                                                        \
      __asm__("" : "+r"(value));                                           \
    }                                                                      \
    output[i] = (int8_t)value;                                             \
  } while (0)
    for (; left >= 4; left -= 4, a += 4, b += 4, output += 4) {
      VALUE(0);
      VALUE(1);
      VALUE(2);
      VALUE(3);
    }
    for (; left > 0; left--, a++, b++, output++) {
      VALUE(0);
    }
#undef VALUE
    return;
  }
#endif
  TINYET_BROADCAST_ROW(int8_t, int32_t, a, b, output, &params->shape,
                       (int8_t)tinyet_clamp((offset + x * a_factor + y * b_factor) >> shift, low, high));
}

void tinyet_affine_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_affine_s8_params *params) {
  TINYET_BROADCAST(int8_t, a, b, output, params, tinyet_affine_row);
}
