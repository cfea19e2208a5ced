/* SPDX-License-Identifier: Apache-2.0 */
/* The sums that the gates of recurrent layers are made of, for cores with DSP instructions. Weights are read once a step, so
 * that widening them would be most of the work. Of each two rows a, b there is a lane 256 * b + a for every input; how sums
 * are made of these is in tinyet_tile_dsp.h (crossed). */
#ifndef TINYET_GATES_DSP_H
#define TINYET_GATES_DSP_H

#include "tinyet_dsp.h"
#include "tinyet_gates.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Four rows a … d at a time of one gate, in the order that the loop reads it in. */
typedef struct {
  const int8_t *weights; /* for each four inputs: lanes (b, a) of (0, 2), of (1, 3); lanes (d, c) of the same */
  const int32_t *bias;   /* of each four rows: 256 * bias b + bias a, bias a - constant, the same of d and c */
  const uint32_t *pairs; /* inputs (0, 2) and (1, 3) of each four */
  int32_t fours;         /* of inputs, rounded up; one at least */
  int32_t start;         /* minus the sum of all products of inputs 0 and 1, 2 and 3 of each four */
  int32_t multiplier;
  int32_t add;   /* half of what requantization divides by; where it multiplies, the shift to the left */
  int32_t shift; /* to the right; 0 where it multiplies */
  int16_t *sums, *end;
} tinyet_gate_dsp;

/* Pairs (0, 2) and (1, 3) of each four values; zeros for those that are missing. Gives `start`. */
static inline int32_t tinyet_widen_dsp(const int8_t *values, int32_t count, uint32_t *pairs) {
  int32_t products = 0;
  for (; count > 0; count -= 4) {
    uint32_t word = 0;
    if (count >= 4) {
      memcpy(&word, values, 4);
    } else {
      memcpy(&word, values, (size_t)count);
    }
    pairs[0] = tinyet_even_bytes_dsp(word);
    pairs[1] = tinyet_odd_bytes_dsp(word);
    products = tinyet_smlad_dsp(pairs[0], pairs[1], products);
    pairs += 2;
    values += 4;
  }
  return -products;
}

#if TINYET_DSP_ASM
/* r4, r6: 256 * B + A of both pairs of rows; r5, r8: A. */
#define TINYET_DSP_GATE_FOUR       \
  "ldrd r9, r10, [lr], #8\n"       \
  "ldmia.n r7!, {r0, r1, r2, r3}\n" \
  "smlad r4, r0, r9, r4\n"         \
  "smlad r4, r1, r10, r4\n"        \
  "sxtab16 r0, r10, r0\n"          \
  "sxtab16 r1, r9, r1\n"           \
  "smlad r5, r0, r1, r5\n"         \
  "smlad r6, r2, r9, r6\n"         \
  "smlad r6, r3, r10, r6\n"        \
  "sxtab16 r2, r10, r2\n"          \
  "sxtab16 r3, r9, r3\n"           \
  "smlad r8, r2, r3, r8\n"
/* Adds four rows in r5, r4, r8, r6 to r0 and r1: each by itself; or the sum alone is saturated. */
#define TINYET_DSP_GATE_SATURATED  \
  "ssat r5, #16, r5\n"             \
  "ssat r4, #16, r4\n"             \
  "ssat r8, #16, r8\n"             \
  "ssat r6, #16, r6\n"             \
  "pkhbt r5, r5, r4, lsl #16\n"    \
  "pkhbt r8, r8, r6, lsl #16\n"
#define TINYET_DSP_GATE_APART \
  TINYET_DSP_GATE_SATURATED   \
  "qadd16 r5, r5, r0\n"       \
  "qadd16 r8, r8, r1\n"
#define TINYET_DSP_GATE_TOGETHER    \
  "sxtah r5, r5, r0\n"              \
  "sxtah r4, r4, r0, ror #16\n"     \
  "sxtah r8, r8, r1\n"              \
  "sxtah r6, r6, r1, ror #16\n" TINYET_DSP_GATE_SATURATED
/* r7 may be the frame pointer, which is not to be named among the registers that are lost; gate is in r0 or r7. */
#define TINYET_DSP_GATE_ROWS(ADDED)                                                                \
  __asm__ volatile("push {r0, r7}\n"                                                               \
      "mov r12, %[gate]\n"                                                                         \
      "ldr r7, [r12]\n"                                                                            \
      "1:\n"                                                                                       \
      "ldrd r0, lr, [r12, #4]\n"                                                                   \
      "ldrd r11, r1, [r12, #12]\n"                                                                 \
      "ldmia.w r0!, {r4, r5, r6, r8}\n"                                                            \
      "str r0, [r12, #4]\n"                                                                        \
      "add r5, r5, r1\n"                                                                           \
      "add r8, r8, r1\n"                                                                           \
      "lsrs r11, r11, #1\n"                                                                        \
      "bcc 2f\n" TINYET_DSP_GATE_FOUR                                                              \
      "2:\n"                                                                                       \
      "beq 4f\n"                                                                                   \
      "3:\n" TINYET_DSP_GATE_FOUR TINYET_DSP_GATE_FOUR                                             \
      "subs r11, r11, #1\n"                                                                        \
      "bne 3b\n"                                                                                   \
      "4:\n"                                                                                       \
      "add r0, r12, #20\n"                                                                         \
      "ldmia.n r0, {r0, r1, r2, r3}\n"                                                             \
      /* Twice each sum, as a product's upper word takes it. */                                    \
      "subs r4, r4, r5\n"                                                                          \
      "asrs r4, r4, #7\n"                                                                          \
      "lsls r5, r5, #1\n"                                                                          \
      "sub r6, r6, r8\n"                                                                           \
      "asrs r6, r6, #7\n"                                                                          \
      "lsl r8, r8, #1\n"                                                                           \
      "cbz r2, 5f\n"                                                                               \
      "add r9, r1, r5, asr #31\n"                                                                  \
      "smmlar r5, r5, r0, r9\n"                                                                    \
      "add r9, r1, r4, asr #31\n"                                                                  \
      "smmlar r4, r4, r0, r9\n"                                                                    \
      "add r9, r1, r8, asr #31\n"                                                                  \
      "smmlar r8, r8, r0, r9\n"                                                                    \
      "add r9, r1, r6, asr #31\n"                                                                  \
      "smmlar r6, r6, r0, r9\n"                                                                    \
      "asrs r5, r5, r2\n"                                                                          \
      "asrs r4, r4, r2\n"                                                                          \
      "asr r8, r8, r2\n"                                                                           \
      "asrs r6, r6, r2\n"                                                                          \
      "b 6f\n"                                                                                     \
      "5:\n"                                                                                       \
      "lsls r5, r5, r1\n"                                                                          \
      "smmulr r5, r5, r0\n"                                                                        \
      "lsls r4, r4, r1\n"                                                                          \
      "smmulr r4, r4, r0\n"                                                                        \
      "lsl r8, r8, r1\n"                                                                           \
      "smmulr r8, r8, r0\n"                                                                        \
      "lsls r6, r6, r1\n"                                                                          \
      "smmulr r6, r6, r0\n"                                                                        \
      "6:\n"                                                                                       \
      "ldrd r0, r1, [r3]\n" ADDED                                                                  \
      "strd r5, r8, [r3], #8\n"                                                                    \
      "ldr r0, [r12, #36]\n"                                                                       \
      "str r3, [r12, #32]\n"                                                                       \
      "cmp r3, r0\n"                                                                               \
      "bne 1b\n"                                                                                   \
      "pop {r0, r7}\n"                                                                             \
      :                                                                                            \
      : [gate] "r"(gate)                                                                           \
      : "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "memory", "cc")
/* Adds the sums of a gate's rows. apart: they are saturated before, too. */
TINYET_DSP_INLINE void tinyet_gate_rows_dsp(tinyet_gate_dsp *gate, const int32_t apart) {
  if (apart) {
    TINYET_DSP_GATE_ROWS(TINYET_DSP_GATE_APART);
  } else {
    TINYET_DSP_GATE_ROWS(TINYET_DSP_GATE_TOGETHER);
  }
}
#undef TINYET_DSP_GATE_ROWS
#undef TINYET_DSP_GATE_TOGETHER
#undef TINYET_DSP_GATE_APART
#undef TINYET_DSP_GATE_SATURATED
#undef TINYET_DSP_GATE_FOUR
#else
TINYET_DSP_INLINE int32_t tinyet_gate_result_dsp(int32_t sum, const tinyet_gate_dsp *gate) {
  const int32_t twice = tinyet_shift_left(sum, gate->shift == 0 ? gate->add + 1 : 1);
  const int32_t start = gate->shift == 0 ? 0 : gate->add + (sum >> 31);
  return tinyet_smmlar_dsp(twice, gate->multiplier, start) >> gate->shift;
}
TINYET_DSP_INLINE void tinyet_gate_rows_dsp(tinyet_gate_dsp *gate, const int32_t apart) {
  const int8_t *w = gate->weights;
  for (const int32_t *bias = gate->bias; gate->sums != gate->end; bias += 4, gate->sums += 4) {
    int32_t both[2] = {bias[0], bias[2]};
    uint32_t lower[2] = {(uint32_t)bias[1] + (uint32_t)gate->start, (uint32_t)bias[3] + (uint32_t)gate->start};
    for (int32_t four = 0; four < gate->fours; four++) {
      const uint32_t x0 = gate->pairs[2 * four], x1 = gate->pairs[2 * four + 1];
      for (int32_t i = 0; i < 2; i++, w += 8) {
        const uint32_t w0 = tinyet_load_dsp(w), w1 = tinyet_load_dsp(w + 4);
        both[i] = tinyet_smlad_dsp(w1, x1, tinyet_smlad_dsp(w0, x0, both[i]));
        lower[i] = (uint32_t)tinyet_smlad_dsp(tinyet_add_even_bytes_dsp(x1, w0), tinyet_add_even_bytes_dsp(x0, w1), (int32_t)lower[i]);
      }
    }
    for (int32_t i = 0; i < 4; i++) {
      const int32_t a = (int32_t)lower[i / 2], b = (int32_t)((uint32_t)both[i / 2] - (uint32_t)a) >> 8;
      const int32_t result = tinyet_gate_result_dsp(i % 2 == 0 ? a : b, gate);
      gate->sums[i] = (int16_t)tinyet_gate_saturate(gate->sums[i] + (apart ? tinyet_gate_saturate(result) : result));
    }
  }
}
#endif

TINYET_DSP_INLINE void tinyet_part_sums_dsp(const int8_t *input, const tinyet_gate_part_s8 *part, int32_t gates,
                                       int32_t units, int16_t *sums, uint32_t *pairs, const int32_t apart) {
  const int32_t fours = (part->depth + 3) / 4;
  tinyet_gate_dsp gate = {part->weights, part->bias, pairs, fours, 0, 0, 0, 0, sums, sums};
  gate.start = tinyet_widen_dsp(input, part->depth, pairs);
  for (int32_t i = 0; i < gates; i++) {
    const int32_t form = part->form[i];
    gate.multiplier = part->multiplier[i];
    gate.shift = form < 0 ? 0 : form + 1;
    gate.add = form < 0 ? form + 31 : INT32_C(1) << form;
    gate.end += units;
    tinyet_gate_rows_dsp(&gate, apart);
    gate.weights += units * fours * 4;
    gate.bias = part->bias + (i + 1) * units;
    gate.sums = gate.end;
  }
}

/* tinyet_gate_sums of weights and bias that are packed, as tinyet_gate_dsp has them; forms below 0 multiply. pairs: for as many
 * int16 as the input has values, rounded up to fours. */
static __attribute__((noinline, unused)) void tinyet_gate_sums_dsp(const int8_t *input, const tinyet_gate_part_s8 *part,
                                                                   int32_t gates, int32_t units, int16_t *sums,
                                                                   uint32_t *pairs) {
  tinyet_part_sums_dsp(input, part, gates, units, sums, pairs, 0);
}

/* The same as tinyet_lut_sums_s8. */
static __attribute__((noinline, unused)) void tinyet_lut_sums_dsp(const int8_t *input,
                                                                  const tinyet_gate_part_s8 *part, int32_t gates,
                                                                  int32_t units, int16_t *sums, uint32_t *pairs) {
  tinyet_part_sums_dsp(input, part, gates, units, sums, pairs, 1);
}

#ifdef __cplusplus
}
#endif

#endif
