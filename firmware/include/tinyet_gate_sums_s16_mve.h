/* SPDX-License-Identifier: Apache-2.0 */
/* The sums that the gates of recurrent layers in int16 are made of, for cores with Helium: eight products at a time,
 * of eight rows, where 32 bits hold the sums. The loop is inline assembly, one text for GCC and clang. Elsewhere the
 * same is plain C.
 *
 * Weights lie, of each eight rows of a gate, in eights: eight inputs of each row in turn; zeros fill up both. Rows
 * 0, 2, 4, 6 come before rows 1, 3, 5, 7, among the biases, too, so that narrowed sums join in order. A gate's
 * multiplier has 31 bits, and its form is by how many bits the high product's integer part is shifted to the right
 * behind that: the rule of 64 bits, which is rounded once. */
#ifndef TINYET_GATE_SUMS_S16_MVE_H
#define TINYET_GATE_SUMS_S16_MVE_H

#include <string.h>

#include "tinyet_gates.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of a gate. */
typedef struct {
  const int8_t *weights;
  int16_t *sums, *end;
  const int32_t *bias;
  const int16_t *input;
  int32_t eights, multiplier, shift;
} tinyet_gate_rows_s16_mve;

#if TINYET_GATE_MVE
/* clang-format off */
#define TINYET_MVE_ROW_S16(Q, SUM) \
  "vldrb.s16 " Q ", [r3], #8\n" \
  "vmladava.s16 " SUM ", q0, " Q "\n"
#define TINYET_MVE_ROWS_S16 \
  "vldrh.u16 q0, [r1], #16\n" \
  TINYET_MVE_ROW_S16("q1", "r0") TINYET_MVE_ROW_S16("q2", "r2") TINYET_MVE_ROW_S16("q3", "r4") \
  TINYET_MVE_ROW_S16("q1", "r6") TINYET_MVE_ROW_S16("q2", "r8") TINYET_MVE_ROW_S16("q3", "r10") \
  TINYET_MVE_ROW_S16("q1", "r12") TINYET_MVE_ROW_S16("q2", "lr")

/* r1: inputs, r3: weights, r5: sums, r7: what is left of the eights, r9: the last sums' end, r11: biases. On the
 * stack behind eight sums: input, eights, multiplier and shift. VQDMULH leaves the bits that the shift rounds. */
TINYET_GATE_NAKED static void tinyet_lut_rows_s16_mve(__attribute__((unused)) const tinyet_gate_rows_s16_mve *rows) {
  __asm__ volatile(
      "push {r3-r11, lr}\n"
      "ldm.w r0!, {r3, r5, r9, r11}\n"
      "ldm.w r0, {r1, r2, r4, r6}\n"
      "rsb.w r6, r6, #0\n"
      "sub.w sp, sp, #48\n"
      "add.w r0, sp, #32\n"
      "stm.w r0, {r1, r2, r4, r6}\n"
      "1:\n"
      "ldm.w r11!, {r0, r2, r4, r6, r8, r10, r12, lr}\n"
      "ldrd r1, r7, [sp, #32]\n"
      "lsrs.w r7, r7, #1\n"
      "bcc.w 2f\n" TINYET_MVE_ROWS_S16
      "beq.w 3f\n" /* as LSRS found it */
      "2:\n" TINYET_MVE_ROWS_S16 TINYET_MVE_ROWS_S16
      "subs.w r7, r7, #1\n"
      "bne.w 2b\n"
      "3:\n"
      "stm.w sp, {r0, r2, r4, r6, r8, r10, r12, lr}\n"
      "ldrd r0, r2, [sp, #40]\n"
      "vldrw.32 q0, [sp]\n"
      "vqdmulh.s32 q0, q0, r0\n"
      "vldrw.32 q1, [sp, #16]\n"
      "vqdmulh.s32 q1, q1, r0\n"
      "vrshl.s32 q0, r2\n"
      "vldrh.u16 q2, [r5]\n"
      "vrshl.s32 q1, r2\n"
      "vqmovnb.s32 q0, q0\n"
      "vqmovnt.s32 q0, q1\n"
      "vqadd.s16 q0, q0, q2\n"
      "vstrh.16 q0, [r5], #16\n"
      "cmp.w r5, r9\n"
      "blo.w 1b\n"
      "add.w sp, sp, #48\n"
      "pop.w {r3-r11, pc}\n");
}
/* clang-format on */
#else
static inline void tinyet_lut_rows_s16_mve(const tinyet_gate_rows_s16_mve *rows) {
  const int8_t *w = rows->weights;
  const int32_t *bias = rows->bias;
  for (int16_t *sums = rows->sums; sums < rows->end; sums += 8, w += 64 * rows->eights, bias += 8) {
    for (int32_t i = 0; i < 8 && sums + i < rows->end; i++) {
      const int32_t place = (i & 1) * 4 + i / 2;
      int32_t sum = bias[place];
      for (int32_t k = 0; k < 8 * rows->eights; k++) {
        sum += rows->input[k] * w[(k & ~7) * 8 + place * 8 + (k & 7)];
      }
      const int32_t value = tinyet_requantize_s64(sum, rows->multiplier >> 16, rows->shift + 15);
      sums[i] = (int16_t)tinyet_clamp(sums[i] + tinyet_clamp(value, INT16_MIN, INT16_MAX), INT16_MIN, INT16_MAX);
    }
  }
}
#endif

/* Adds to sums, as tinyet_lut_sums_s16 does. units: fours. Of four units that are left the next four sums are
 * stored, too, as they are. wide: for as many values as the input has, rounded up to eights. */
static __attribute__((noinline, unused)) void tinyet_lut_sums_s16_mve(const int16_t *input, const tinyet_gate_part_s8 *part,
                                                                      int32_t gates, int32_t units, int16_t *sums,
                                                                      int16_t *wide) {
  const int32_t depth = part->depth, eights = (depth + 7) / 8;
  tinyet_gate_rows_s16_mve rows = {part->weights, sums, NULL, part->bias, input, eights, 0, 0};
  if ((depth & 7) != 0) {
#if TINYET_GATE_MVE
    for (int32_t k = 0; k < depth; k += 8) {
      vstrhq_s16(wide + k, vldrhq_z_s16(input + k, vctp16q((uint32_t)(depth - k))));
    }
#else
    memcpy(wide, input, (size_t)depth * sizeof *wide);
    memset(wide + depth, 0, (size_t)(8 * eights - depth) * sizeof *wide);
#endif
    rows.input = wide;
  }
  const int32_t filled = (units + 7) & ~INT32_C(7);
  for (int32_t gate = 0; gate < gates; gate++) {
    rows.end = rows.sums + units;
    rows.multiplier = part->multiplier[gate], rows.shift = part->form[gate];
    tinyet_lut_rows_s16_mve(&rows);
    rows.sums += units;
    rows.bias += filled;
    rows.weights += 8 * eights * filled;
  }
}

#ifdef __cplusplus
}
#endif

#endif
