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

#ifdef __AVR__
enum { TINYET_AVR_MOST = 255u };

/* Values of a row. A byte, 128 more than it was, has no sign that would have to be extended; the offset lacks what that adds.
 * Bounds are of the sum's upper half, which has the output and `shift - 16` bits behind it. */
typedef struct {
  const int8_t *a, *b;
  int8_t *output;
  uint8_t count, left; /* left: 2^(24 - shift), by which a product of bytes shifts */
  uint32_t a_factor, b_factor, offset;
  int16_t low, high;
} job;

TINYET_STATIC_ASSERT(offsetof(job, count) == 6 && offsetof(job, offset) == 16 && offsetof(job, high) == 22,
                     "as the assembly has it");

/* Registers 4 to 7 and 8 to 11 are the factors, 12 to 15 the offset, 18 to 21 the sum, 22 to 25 the bounds; 2 is zero. */
static TINYET_NOINLINE void values(const job *of) {
#define FACTOR(a, b, c, d)                                                             \
  "subi r16, 0x80\n"                                                                   \
  "mul r16, " a "\n" "add r18, r0\n" "adc r19, r1\n" "adc r20, r2\n" "adc r21, r2\n" \
  "mul r16, " b "\n" "add r19, r0\n" "adc r20, r1\n" "adc r21, r2\n"                 \
  "mul r16, " c "\n" "add r20, r0\n" "adc r21, r1\n"                                 \
  "mul r16, " d "\n" "add r21, r0\n"
#define LOAD(to, from) "ldd r" #to ", Y+" #from "\n"
  __asm__ volatile(
      "push r28\n"
      "push r29\n"
      "movw r28, r30\n"
      LOAD(26, 0) LOAD(27, 1) LOAD(30, 2) LOAD(31, 3) LOAD(18, 4) LOAD(19, 5) LOAD(3, 6) LOAD(17, 7)
      LOAD(4, 8) LOAD(5, 9) LOAD(6, 10) LOAD(7, 11) LOAD(8, 12) LOAD(9, 13) LOAD(10, 14) LOAD(11, 15)
      LOAD(12, 16) LOAD(13, 17) LOAD(14, 18) LOAD(15, 19) LOAD(22, 20) LOAD(23, 21) LOAD(24, 22) LOAD(25, 23)
      "movw r28, r18\n"
      "clr r2\n"
      "1:\n"
      "ld r16, X+\n"
      "movw r18, r12\n"
      "movw r20, r14\n"
      FACTOR("r4", "r5", "r6", "r7")
      "ld r16, Z+\n"
      FACTOR("r8", "r9", "r10", "r11")
      "cp r20, r22\n"
      "cpc r21, r23\n"
      "brge 2f\n"
      "movw r20, r22\n"
      "2:\n"
      "cp r24, r20\n"
      "cpc r25, r21\n"
      "brge 3f\n"
      "movw r20, r24\n"
      "3:\n"
      "mul r20, r17\n"
      "mov r20, r1\n"
      "mul r21, r17\n"
      "or r20, r0\n"
      "st Y+, r20\n"
      "dec r3\n"
      "brne 1b\n"
      "clr __zero_reg__\n"
      "pop r29\n"
      "pop r28\n"
      : "+z"(of)
      :
      : "r0", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "r16", "r17", "r18",
        "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "memory");
#undef FACTOR
#undef LOAD
}

/* The row by `values`, for shifts of which the upper half has it all. An operand that the whole row shares is part of the
 * offset; what is read in its place counts nothing. */
static void row_of_bytes(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_affine_s8_params *p) {
  const uint8_t behind = (uint8_t)(p->shift - 16);
  job of = {a, b, output, 0u, (uint8_t)(1u << (8u - behind)), (uint32_t)p->a_factor, (uint32_t)p->b_factor,
            (uint32_t)p->offset, 0, 0};
  of.low = (int16_t)(p->clamp_low * (INT32_C(1) << behind));
  of.high = (int16_t)((p->clamp_high + 1) * (INT32_C(1) << behind) - 1);
  const uint8_t a_stays = p->shape.a_step == 0, b_stays = p->shape.b_step == 0;
  if (a_stays != 0u) {
    of.offset += of.a_factor * (uint32_t)(int32_t)*a;
    of.a_factor = 0u;
    of.a = b;
  } else if (b_stays != 0u) {
    of.offset += of.b_factor * (uint32_t)(int32_t)*b;
    of.b_factor = 0u;
    of.b = a;
  }
  of.offset -= (of.a_factor + of.b_factor) << 7;
  for (uint16_t left = (uint16_t)p->shape.row; left != 0u; left = (uint16_t)(left - of.count)) {
    of.count = (uint8_t)(left < TINYET_AVR_MOST ? left : (uint16_t)TINYET_AVR_MOST);
    values(&of);
    of.a += of.count;
    of.b += of.count;
    of.output += of.count;
  }
}
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
#elif defined(__AVR__)
  if (shift > 16 && shift <= 24) {
    row_of_bytes(a, b, output, params);
    return;
  }
#else
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
