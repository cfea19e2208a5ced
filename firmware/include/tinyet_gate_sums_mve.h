/* SPDX-License-Identifier: Apache-2.0 */
/* The sums that the gates of recurrent layers are made of, for cores with Helium: sixteen products at a time, of eight rows. The
 * loop is inline assembly, one text for GCC and clang. Elsewhere the same is plain C.
 *
 * Weights lie, of each eight rows of a gate, in sixteens: sixteen inputs of each row in turn. Of a depth above sixteen whose last
 * sixteen is half or less, the last eight inputs of each row lie side by side; otherwise zeros fill it. Rows 0, 2, 4, 6 come before
 * rows 1, 3, 5, 7, among the biases, too, so that narrowed sums join in order. Four rows that are left lie as they are. Behind
 * all are 16 bytes that may be read. */
#ifndef TINYET_GATE_SUMS_MVE_H
#define TINYET_GATE_SUMS_MVE_H

#include <string.h>

#include "tinyet_gates.h"

#ifdef __cplusplus
extern "C" {
#endif

#if TINYET_GATE_MVE
/* Rows of a gate, in eights. The shift is to the right by -shift, rounded, behind the multiplication; or before it to the left. */
typedef struct {
  const int8_t *weights;
  int16_t *sums, *end;
  const int32_t *bias;
  const int8_t *input;
  int32_t sixteens, half, multiplier, shift;
} tinyet_gate_rows_mve;

/* All rows of all gates, in eights. */
typedef struct {
  const int8_t *weights;
  int16_t *sums;
  int32_t gate_bytes; /* of sums */
  int16_t *end;
  const int32_t *multiplier, *form;
  const int8_t *input;
  const int32_t *bias;
  int32_t sixteens, half;
} tinyet_gates_held_mve;

/* clang-format off */
#define TINYET_MVE_ROW(Q, SUM) \
  "vldrb.8 " Q ", [r3], #16\n" \
  "vmladava.s8 " SUM ", q0, " Q "\n"
#define TINYET_MVE_ROWS \
  "vldrb.8 q0, [r1], #16\n" \
  TINYET_MVE_ROW("q1", "r0") TINYET_MVE_ROW("q2", "r2") TINYET_MVE_ROW("q3", "r4") TINYET_MVE_ROW("q1", "r6") \
  TINYET_MVE_ROW("q2", "r8") TINYET_MVE_ROW("q3", "r10") TINYET_MVE_ROW("q1", "r12") TINYET_MVE_ROW("q2", "lr")
#define TINYET_MVE_TWO_ROWS(Q, A, B) \
  "vldrb.8 " Q ", [r3], #16\n" \
  "vmladava.s8 " A ", q0, " Q "\n" \
  "vmladava.s8 " B ", q1, " Q "\n"
/* Ties of the shift away from zero. */
#define TINYET_MVE_SHIFT_RIGHT_OF(MULTIPLIER, SHIFT) \
  "vshr.s32 q2, q0, #31\n" \
  "vshr.s32 q3, q1, #31\n" \
  "vqrdmlah.s32 q2, q0, " MULTIPLIER "\n" \
  "vqrdmlah.s32 q3, q1, " MULTIPLIER "\n" \
  "vrshl.s32 q2, " SHIFT "\n" \
  "vrshl.s32 q3, " SHIFT "\n"
#define TINYET_MVE_SHIFT_RIGHT TINYET_MVE_SHIFT_RIGHT_OF("r0", "r2")
#define TINYET_MVE_SHIFT_LEFT \
  "vshl.s32 q0, r2\n" \
  "vshl.s32 q1, r2\n" \
  "vqrdmulh.s32 q2, q0, r0\n" \
  "vqrdmulh.s32 q3, q1, r0\n"
#define TINYET_MVE_SATURATE_ONCE \
  "vldrh.u16 q0, [r5]\n" \
  "vmovlb.s16 q1, q0\n" \
  "vmovlt.s16 q0, q0\n" \
  "vadd.i32 q2, q2, q1\n" \
  "vadd.i32 q3, q3, q0\n" \
  "vqmovnb.s32 q0, q2\n" \
  "vqmovnt.s32 q0, q3\n"
#define TINYET_MVE_SATURATE_TWICE \
  "vqmovnb.s32 q0, q2\n" \
  "vldrh.u16 q1, [r5]\n" \
  "vqmovnt.s32 q0, q3\n" \
  "vqadd.s16 q0, q0, q1\n"

#define TINYET_MVE_SATURATE_FIRST \
  "vqmovnb.s32 q0, q2\n" \
  "vqmovnt.s32 q0, q3\n"

/* r1: inputs, r3: weights, r5: sums, r7: what is left of the sixteens, r9: the last sums' end, r11: biases. */
#define TINYET_MVE_GATE_ROWS(NAME, SHIFT, SATURATE) \
  TINYET_GATE_NAKED static void NAME(__attribute__((unused)) const tinyet_gate_rows_mve *rows) { \
    __asm__ volatile( \
      "push {r3-r11, lr}\n" \
      "ldm.w r0!, {r3, r5, r9, r11}\n" \
      "ldm.w r0, {r1, r2, r4, r6, r8}\n" \
      "sub.w sp, sp, #56\n" \
      "add.w r0, sp, #32\n" \
      "stm.w r0, {r1, r2, r4, r6, r8}\n" \
      "1:\n" \
      "ldm.w r11!, {r0, r2, r4, r6, r8, r10, r12, lr}\n" \
      "ldrd r1, r7, [sp, #32]\n" \
      "lsrs.w r7, r7, #1\n" \
      "bcc.w 2f\n" TINYET_MVE_ROWS \
      "beq.w 3f\n" /* as LSRS found it */ \
      "2:\n" TINYET_MVE_ROWS TINYET_MVE_ROWS \
      "subs.w r7, r7, #1\n" \
      "bne.w 2b\n" \
      "3:\n" \
      "ldr.w r7, [sp, #40]\n" \
      "cbz r7, 4f\n" \
      "vldrb.8 q0, [r1]\n" \
      "vldrb.8 q1, [r1, #16]\n" TINYET_MVE_TWO_ROWS("q2", "r0", "r2") TINYET_MVE_TWO_ROWS("q3", "r4", "r6") \
      TINYET_MVE_TWO_ROWS("q2", "r8", "r10") TINYET_MVE_TWO_ROWS("q3", "r12", "lr") \
      "4:\n" \
      "stm.w sp, {r0, r2, r4, r6, r8, r10, r12, lr}\n" \
      "ldrd r0, r2, [sp, #44]\n" \
      "vldrw.32 q0, [sp]\n" \
      "vldrw.32 q1, [sp, #16]\n" SHIFT SATURATE \
      "vstrh.16 q0, [r5], #16\n" \
      "cmp.w r5, r9\n" \
      "bne.w 1b\n" \
      "add.w sp, sp, #56\n" \
      "pop.w {r3-r11, pc}\n"); \
  }

/* The same of all gates, of inputs that four vectors hold, and of shifts to the right: nothing is read twice. r1: multiplier,
 * r7: shift, r9: the end of the gate's sums. On the stack behind eight sums: where a text begins; bytes of a gate's sums; the last
 * ones' end; multipliers; forms. Sixteens end in q7; a half is in q4, and behind zeros in q5. Each sixteen is 64 bytes of text, and
 * what is before label 11, of two and of a half, is 180. */
#define TINYET_MVE_HELD_ROW(IN, Q, SUM) \
  "vldrb.8 " Q ", [r3], #16\n" \
  "vmladava.s8 " SUM ", " IN ", " Q "\n"
#define TINYET_MVE_HELD_ROWS(IN) \
  TINYET_MVE_HELD_ROW(IN, "q1", "r0") TINYET_MVE_HELD_ROW(IN, "q2", "r2") TINYET_MVE_HELD_ROW(IN, "q3", "r4") \
  TINYET_MVE_HELD_ROW(IN, "q1", "r6") TINYET_MVE_HELD_ROW(IN, "q2", "r8") TINYET_MVE_HELD_ROW(IN, "q3", "r10") \
  TINYET_MVE_HELD_ROW(IN, "q1", "r12") TINYET_MVE_HELD_ROW(IN, "q2", "lr")
#define TINYET_MVE_TWO_HELD_ROWS(Q, A, B) \
  TINYET_MVE_HELD_ROW("q4", Q, A) \
  "vmladava.s8 " B ", q5, " Q "\n"
#define TINYET_MVE_HELD_GATES(NAME, SATURATE) \
  TINYET_GATE_NAKED static void NAME(__attribute__((unused)) const tinyet_gates_held_mve *gates) { \
    __asm__ volatile( \
      "push {r3-r11, lr}\n" \
      "vpush {d8-d15}\n" \
      "sub.w sp, sp, #56\n" \
      "ldrd r1, r2, [r0, #32]\n" \
      "ldm.w r0, {r3, r5, r6, r7, r8, r9, r10, r11}\n" \
      "adr.w r0, 11f\n" \
      "add.w r10, r10, r1, lsl #4\n" \
      "rsb.w r12, r1, #4\n" \
      "add.w r0, r0, r12, lsl #6\n" \
      "cbz r2, 5f\n" \
      "sub.w r0, r0, #308\n" /* 180, and the two sixteens that are not there */ \
      "vldrb.8 q4, [r10]\n" \
      "vldrb.8 q5, [r10, #16]\n" \
      "5:\n" \
      "vldrb.8 q7, [r10, #-16]\n" \
      "cmp.w r1, #2\n" \
      "blt.w 6f\n" \
      "vldrb.8 q6, [r10, #-32]\n" \
      "beq.w 6f\n" \
      "vldrb.8 q5, [r10, #-48]\n" \
      "cmp.w r1, #3\n" \
      "beq.w 6f\n" \
      "vldrb.8 q4, [r10, #-64]\n" \
      "6:\n" \
      "orr.w r0, r0, #1\n" \
      "add.w r4, sp, #32\n" \
      "stm.w r4, {r0, r6, r7, r8, r9}\n" \
      "7:\n" \
      "ldrd r0, r2, [sp, #44]\n" \
      "ldr.w r9, [sp, #36]\n" \
      "ldr.w r1, [r0], #4\n" \
      "ldr.w r7, [r2], #4\n" \
      "strd r0, r2, [sp, #44]\n" \
      "add.w r9, r9, r5\n" \
      "mvn.w r7, r7\n" \
      "1:\n" \
      "ldm.w r11!, {r0, r2, r4, r6, r8, r10, r12, lr}\n" \
      "ldr.w pc, [sp, #32]\n" \
      ".p2align 2\n" TINYET_MVE_HELD_ROWS("q6") TINYET_MVE_HELD_ROWS("q7") TINYET_MVE_TWO_HELD_ROWS("q1", "r0", "r2") \
      TINYET_MVE_TWO_HELD_ROWS("q2", "r4", "r6") TINYET_MVE_TWO_HELD_ROWS("q3", "r8", "r10") \
      TINYET_MVE_TWO_HELD_ROWS("q1", "r12", "lr") \
      "b.w 13f\n" \
      "11:\n" TINYET_MVE_HELD_ROWS("q4") TINYET_MVE_HELD_ROWS("q5") TINYET_MVE_HELD_ROWS("q6") TINYET_MVE_HELD_ROWS("q7") \
      "13:\n" \
      "stm.w sp, {r0, r2, r4, r6, r8, r10, r12, lr}\n" \
      "vldrw.32 q0, [sp]\n" \
      "vldrw.32 q1, [sp, #16]\n" TINYET_MVE_SHIFT_RIGHT_OF("r1", "r7") SATURATE \
      "vstrh.16 q0, [r5], #16\n" \
      "cmp.w r5, r9\n" \
      "bne.w 1b\n" \
      "ldr.w r0, [sp, #40]\n" \
      "cmp.w r5, r0\n" \
      "bne.w 7b\n" \
      "add.w sp, sp, #56\n" \
      "vpop {d8-d15}\n" \
      "pop.w {r3-r11, pc}\n"); \
  }
/* clang-format on */
TINYET_MVE_HELD_GATES(tinyet_held_gates_mve, TINYET_MVE_SATURATE_ONCE)
TINYET_MVE_HELD_GATES(tinyet_held_first_gates_mve, TINYET_MVE_SATURATE_FIRST)
TINYET_MVE_HELD_GATES(tinyet_held_lut_gates_mve, TINYET_MVE_SATURATE_TWICE)
TINYET_MVE_GATE_ROWS(tinyet_gate_rows_right_mve, TINYET_MVE_SHIFT_RIGHT, TINYET_MVE_SATURATE_ONCE)
TINYET_MVE_GATE_ROWS(tinyet_gate_rows_left_mve, TINYET_MVE_SHIFT_LEFT, TINYET_MVE_SATURATE_ONCE)
TINYET_MVE_GATE_ROWS(tinyet_gate_first_rows_right_mve, TINYET_MVE_SHIFT_RIGHT, TINYET_MVE_SATURATE_FIRST)
TINYET_MVE_GATE_ROWS(tinyet_gate_first_rows_left_mve, TINYET_MVE_SHIFT_LEFT, TINYET_MVE_SATURATE_FIRST)
TINYET_MVE_GATE_ROWS(tinyet_lut_rows_right_mve, TINYET_MVE_SHIFT_RIGHT, TINYET_MVE_SATURATE_TWICE)
TINYET_MVE_GATE_ROWS(tinyet_lut_rows_left_mve, TINYET_MVE_SHIFT_LEFT, TINYET_MVE_SATURATE_TWICE)

/* Four rows of `sixteens` times sixteen inputs, and of eight more where there is a half. */
static inline int32x4_t tinyet_four_rows_mve(const int8_t *input, const int8_t *w, const int32_t *bias, int32_t sixteens,
                                             int32_t half) {
  int32_t a = bias[0], b = bias[1], c = bias[2], d = bias[3];
  __asm__("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d)); /* GCC would load them as a vector, and take it apart */
  for (; sixteens > 0; sixteens--) {
    const int8x16_t values = vldrbq_s8(input);
    a = vmladavaq_s8(a, values, vldrbq_s8(w));
    b = vmladavaq_s8(b, values, vldrbq_s8(w + 16));
    c = vmladavaq_s8(c, values, vldrbq_s8(w + 32));
    d = vmladavaq_s8(d, values, vldrbq_s8(w + 48));
    input += 16, w += 64;
  }
  if (half != 0) {
    const int8x16_t values = vldrbq_s8(input);
    a = vmladavaq_s8(a, values, vldrbq_s8(w));
    b = vmladavaq_s8(b, values, vldrbq_s8(w + 8));
    c = vmladavaq_s8(c, values, vldrbq_s8(w + 16));
    d = vmladavaq_s8(d, values, vldrbq_s8(w + 24));
  }
  return (int32x4_t){a, b, c, d};
}
#endif

enum { TINYET_MVE_ADDED, TINYET_MVE_ADDED_APART, TINYET_MVE_FIRST };

/* how: added to sums; saturated before, too; or in place of whatever is there. */
static inline __attribute__((always_inline)) void tinyet_sums_mve(const int8_t *input, const tinyet_gate_part_s8 *part,
                                                                  int32_t gates, int32_t units, int16_t *sums,
                                                                  int8_t *wide, const int32_t how) {
  const int32_t depth = part->depth, rest = depth & 15, half = depth > 16 && rest != 0 && rest <= 8 ? 1 : 0;
  const int32_t sixteens = (depth + 15) / 16 - half, row = 16 * sixteens + 8 * half, eights = units & ~7;
  const int8_t *w = part->weights;
  const int32_t *bias = part->bias;
#if TINYET_GATE_MVE
  if (rest != 0) {
    for (int32_t k = 0; k < depth; k += 16) {
      vstrbq_s8(wide + k, vldrbq_z_s8(input + k, vctp8q((uint32_t)(depth - k))));
    }
    int8_t *const last = wide + 16 * sixteens;
    if (half != 0) { /* behind the last eight and their zeros the same the other way round */
      memset(last + 16, 0, 8);
      memcpy(last + 24, last, 8);
    }
    input = wide;
  }
  int32_t forms = 0;
  for (int32_t gate = 0; gate < gates; gate++) {
    forms |= part->form[gate];
  }
  if (sixteens + 2 * half <= 4 && eights == units && forms >= 0) {
    const tinyet_gates_held_mve held = {w, sums, 2 * units, sums + gates * units, part->multiplier, part->form, input, bias,
                                        sixteens, half};
    if (how == TINYET_MVE_FIRST) {
      tinyet_held_first_gates_mve(&held);
    } else if (how == TINYET_MVE_ADDED_APART) {
      tinyet_held_lut_gates_mve(&held);
    } else {
      tinyet_held_gates_mve(&held);
    }
    return;
  }
  tinyet_gate_rows_mve rows = {NULL, NULL, NULL, NULL, input, sixteens, half, 0, 0};
#else
  (void)wide;
#endif
  for (int32_t gate = 0; gate < gates; gate++) {
    const int32_t multiplier = part->multiplier[gate], form = part->form[gate];
#if TINYET_GATE_MVE
    const int32_t shift = form < 0 ? form + 31 : -1 - form;
    if (eights != 0) {
      rows.weights = w, rows.sums = sums, rows.bias = bias, rows.multiplier = multiplier, rows.shift = shift;
      rows.end = sums += eights;
      if (how == TINYET_MVE_FIRST) {
        form < 0 ? tinyet_gate_first_rows_left_mve(&rows) : tinyet_gate_first_rows_right_mve(&rows);
      } else if (how == TINYET_MVE_ADDED_APART) {
        form < 0 ? tinyet_lut_rows_left_mve(&rows) : tinyet_lut_rows_right_mve(&rows);
      } else {
        form < 0 ? tinyet_gate_rows_left_mve(&rows) : tinyet_gate_rows_right_mve(&rows);
      }
      w += eights * row, bias += eights;
    }
    if (eights != units) {
      int32x4_t four = tinyet_four_rows_mve(input, w, bias, sixteens, half);
      if (form >= 0) {
        four = tinyet_rounded_mve(vqrdmulhq_n_s32(four, multiplier), -shift);
      } else {
        four = vqrdmulhq_n_s32(vshlq_r_s32(four, shift), multiplier);
      }
      if (how == TINYET_MVE_ADDED_APART) {
        int16x8_t saturated = vqmovnbq_s32(vdupq_n_s16(0), four);
        __asm__("" : "+w"(saturated)); /* clang 14 takes what is in the lower halves for what was there before */
        four = vmovlbq_s16(saturated);
      }
      if (how != TINYET_MVE_FIRST) {
        four = vaddq_s32(four, vldrhq_s32(sums));
      }
      vstrhq_s32(sums, vreinterpretq_s32_s16(vqmovnbq_s32(vdupq_n_s16(0), four)));
      w += 4 * row, bias += 4, sums += 4;
    }
#else
    for (int32_t n = 0; n < units; n++) {
      const int32_t group = n < eights ? 8 : 4, place = n < eights ? (n & 1) * 4 + (n & 7) / 2 : n & 3;
      const int8_t *const rows = w + (n - n % group) * row;
      int32_t sum = bias[n - n % group + place];
      for (int32_t k = 0; k < depth; k++) {
        const int32_t wide_row = k < 16 * sixteens ? 16 : 8;
        sum += input[k] * rows[(k & ~15) * group + place * wide_row + (k & 15)];
      }
      sum = tinyet_requantize_form(sum, multiplier, form, 0);
      sum = how == TINYET_MVE_ADDED_APART ? tinyet_gate_saturate(sum) : sum;
      sum += how == TINYET_MVE_FIRST ? 0 : *sums;
      *sums++ = (int16_t)tinyet_gate_saturate(sum);
    }
    w += units * row, bias += units;
#endif
  }
}

/* tinyet_gate_sums of such weights. wide: for as many int8 as the input has values, rounded up to sixteens, and sixteen more. */
static __attribute__((noinline, unused)) void tinyet_gate_sums_mve(const int8_t *input, const tinyet_gate_part_s8 *part,
                                                                   int32_t gates, int32_t units, int16_t *sums,
                                                                   int8_t *wide) {
  tinyet_sums_mve(input, part, gates, units, sums, wide, TINYET_MVE_ADDED);
}

/* The same where all sums are 0. */
static __attribute__((noinline, unused)) void tinyet_gate_first_sums_mve(const int8_t *input, const tinyet_gate_part_s8 *part,
                                                                         int32_t gates, int32_t units, int16_t *sums,
                                                                         int8_t *wide) {
  tinyet_sums_mve(input, part, gates, units, sums, wide, TINYET_MVE_FIRST);
}

/* The same as tinyet_lut_sums_s8. */
static __attribute__((noinline, unused)) void tinyet_lut_sums_mve(const int8_t *input,
                                                                  const tinyet_gate_part_s8 *part, int32_t gates,
                                                                  int32_t units, int16_t *sums, int8_t *wide) {
  tinyet_sums_mve(input, part, gates, units, sums, wide, TINYET_MVE_ADDED_APART);
}

#ifdef __cplusplus
}
#endif

#endif
