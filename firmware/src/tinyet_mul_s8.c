/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

/* The first rounding: the high word of twice the product by the multiplier, ties upward. */
static inline int32_t high_word(int32_t doubled, int32_t multiplier) {
  return (int32_t)(((int64_t)doubled * multiplier + INT64_C(0x80000000)) >> 32);
}

/* The second one, ties away from zero; the output's zero point is in the offset. */
static inline int32_t away(int32_t x, int32_t offset, int32_t shift) { return (x + (x >> 31) + offset) >> shift; }

#ifdef __AVR__
enum { TINYET_AVR_MOST = 255, TINYET_AVR_SHIFT = 15 /* up to it what is shifted has 24 bits */ };

/* Values of a row, of which a moves on. Bytes and zero points are 128 more than they were: products of these have no sign that
 * would have to be extended. Bounds are of what is shifted, `most` the first number beyond them. */
typedef struct {
  const int8_t *a, *b;
  uint8_t count, b_step;
  uint8_t a_zero, b_zero;
  uint32_t multiplier;
  uint16_t zeros; /* their product */
  int16_t to;     /* from behind a value of a to its output */
  uint8_t left;   /* 2^(8 - shift), or 2^(16 - shift) for shifts above 8: a product of bytes shifts */
  uint8_t upper;  /* whether the shift is above 8 */
  int8_t low, high;
  int32_t offset, least, most;
} job;

TINYET_STATIC_ASSERT(offsetof(job, multiplier) == 8 && offsetof(job, left) == 16 && offsetof(job, offset) == 20 &&
                         offsetof(job, most) == 28,
                     "as the assembly has it");

/* Registers 4 to 7 are the multiplier, 8 and 9 the zero points, 14 and 15 their product; 16 and 17 the values, 18 to 20 their
 * product, 21 to 25 that by the multiplier without its lowest byte; 2 is zero. */
static TINYET_NOINLINE void values(const job *of) {
#define LOAD(to, from) "ldd r" #to ", Y+" #from "\n"
#define CARRY(to) "adc " to ", r2\n"
#define COMPARE(first)                                                                                         \
  "ldd r16, Y+" #first "\n" "cp r24, r16\n" "ldd r16, Y+" #first "+1\n" "cpc r25, r16\n" "ldd r16, Y+" #first \
  "+2\n" "cpc r20, r16\n"
  __asm__ volatile(
      "push r28\n"
      "push r29\n"
      "movw r28, r30\n"
      LOAD(26, 0) LOAD(27, 1) LOAD(30, 2) LOAD(31, 3) LOAD(3, 4) LOAD(10, 5) LOAD(8, 6) LOAD(9, 7)
      LOAD(4, 8) LOAD(5, 9) LOAD(6, 10) LOAD(7, 11) LOAD(14, 12) LOAD(15, 13) LOAD(12, 14) LOAD(13, 15)
      LOAD(11, 16) LOAD(16, 17)
      "bst r16, 0\n"
      "clr r2\n"
      "1:\n"
      "ld r16, X+\n"
      "subi r16, 0x80\n"
      "ld r17, Z\n"
      "subi r17, 0x80\n"
      "add r30, r10\n" CARRY("r31")
      "mul r16, r17\n" "movw r18, r0\n" "clr r20\n"
      "mul r16, r9\n" "sub r18, r0\n" "sbc r19, r1\n" "sbc r20, r2\n"
      "mul r17, r8\n" "sub r18, r0\n" "sbc r19, r1\n" "sbc r20, r2\n"
      "add r18, r14\n" "adc r19, r15\n" CARRY("r20")
      "mul r18, r4\n" "mov r21, r1\n"
      "mul r18, r6\n" "movw r22, r0\n"
      "mul r19, r7\n" "movw r24, r0\n"
      "mul r18, r5\n" "add r21, r0\n" "adc r22, r1\n" CARRY("r23") CARRY("r24") CARRY("r25")
      "mul r19, r4\n" "add r21, r0\n" "adc r22, r1\n" CARRY("r23") CARRY("r24") CARRY("r25")
      "mul r19, r5\n" "add r22, r0\n" "adc r23, r1\n" CARRY("r24") CARRY("r25")
      "mul r18, r7\n" "add r23, r0\n" "adc r24, r1\n" CARRY("r25")
      "mul r19, r6\n" "add r23, r0\n" "adc r24, r1\n" CARRY("r25")
      "sbrs r20, 0\n" /* a negative product is 2^16 less than its lower bytes say */
      "rjmp 2f\n"
      "sub r22, r4\n" "sbc r23, r5\n" "sbc r24, r6\n" "sbc r25, r7\n"
      "2:\n"
      "ldi r16, 0x40\n" /* the first rounding: by 31 bits, of which 24 are these bytes' places */
      "add r23, r16\n" CARRY("r24") CARRY("r25") CARRY("r20")
      "lsl r23\n" "rol r24\n" "rol r25\n" "rol r20\n"
      "add r24, r20\n" "adc r25, r20\n" "adc r20, r20\n" /* less 1 below zero */
      LOAD(16, 20) "add r24, r16\n" LOAD(16, 21) "adc r25, r16\n" LOAD(16, 22) "adc r20, r16\n"
      COMPARE(24)
      LOAD(16, 18)
      "brlt 4f\n"
      COMPARE(28)
      LOAD(16, 19)
      "brge 4f\n"
      "brts 3f\n"
      "mov r20, r25\n"
      "mov r25, r24\n"
      "3:\n"
      "mul r25, r11\n"
      "mov r16, r1\n"
      "mul r20, r11\n"
      "or r16, r0\n"
      "4:\n"
      "add r26, r12\n"
      "adc r27, r13\n"
      "st X, r16\n"
      "sub r26, r12\n"
      "sbc r27, r13\n"
      "dec r3\n"
      "breq 5f\n"
      "rjmp 1b\n"
      "5:\n"
      "clr __zero_reg__\n"
      "pop r29\n"
      "pop r28\n"
      : "+z"(of)
      :
      : "r0", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "r16", "r17", "r18",
        "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "memory");
#undef LOAD
#undef CARRY
#undef COMPARE
}

/* The row by `values`. Factors commute, so that the one that moves on may be the first. */
static void row_of_bytes(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_params *p) {
  const uint8_t swapped = p->shape.a_step == 0, shift = (uint8_t)p->shift;
  const uint8_t a_zero = (uint8_t)(p->a_zero_point + 128), b_zero = (uint8_t)(p->b_zero_point + 128);
  job of;
  of.a = swapped ? b : a;
  of.b = swapped ? a : b;
  of.b_step = p->shape.a_step != 0 && p->shape.b_step != 0;
  of.a_zero = swapped ? b_zero : a_zero;
  of.b_zero = swapped ? a_zero : b_zero;
  of.multiplier = (uint32_t)p->multiplier;
  of.zeros = (uint16_t)((uint16_t)a_zero * b_zero);
  of.to = (int16_t)(output - of.a - 1);
  of.upper = shift > 8u;
  of.left = (uint8_t)(1u << ((16u - shift) & 7u));
  of.low = (int8_t)p->clamp_low;
  of.high = (int8_t)p->clamp_high;
  of.offset = p->offset;
  of.least = p->clamp_low * (INT32_C(1) << shift);
  of.most = (p->clamp_high + 1) * (INT32_C(1) << shift);
  for (uint16_t left = (uint16_t)p->shape.row; left != 0u; left = (uint16_t)(left - of.count)) {
    of.count = (uint8_t)(left < TINYET_AVR_MOST ? left : (uint16_t)TINYET_AVR_MOST);
    values(&of);
    of.a += of.count;
    of.b += of.b_step != 0u ? of.count : 0;
  }
}
#endif

static TINYET_NOINLINE void right_row(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_params *p) {
#ifdef __AVR__
  if (p->shift <= TINYET_AVR_SHIFT) {
    row_of_bytes(a, b, output, p);
    return;
  }
#endif
  const int32_t a_zero_point = p->a_zero_point, b_zero_point = p->b_zero_point, multiplier = p->multiplier;
  const int32_t shift = p->shift, offset = p->offset, low = p->clamp_low, high = p->clamp_high;
  TINYET_BROADCAST_ROW(
      int8_t, int32_t, a, b, output, &p->shape,
      (int8_t)tinyet_clamp(away(high_word((x - a_zero_point) * (y - b_zero_point) * 2, multiplier), offset, shift), low,
                           high));
}

static TINYET_NOINLINE void left_row(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_params *p) {
  const int32_t a_zero_point = p->a_zero_point, b_zero_point = p->b_zero_point, multiplier = p->multiplier;
  const int32_t shift = p->shift, offset = p->offset, low = p->clamp_low, high = p->clamp_high;
  TINYET_BROADCAST_ROW(
      int8_t, int32_t, a, b, output, &p->shape,
      (int8_t)tinyet_clamp(
          high_word(tinyet_shift_left((x - a_zero_point) * (y - b_zero_point), shift), multiplier) + offset, low, high));
}

void tinyet_mul_right_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_params *params) {
  TINYET_BROADCAST(int8_t, a, b, output, params, right_row);
}

void tinyet_mul_left_s8(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_params *params) {
  TINYET_BROADCAST(int8_t, a, b, output, params, left_row);
}
