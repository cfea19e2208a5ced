/* SPDX-License-Identifier: Apache-2.0 */
/* Fully connected layers of few rows with two int8 weights in one lane, for cores with DSP instructions: see tinyet_dsp.h.
 *
 * Each weight is used once, so that reading and widening weights would be most of the work. Here they are not widened: of each
 * two channels a, b there is a lane 256 * b + a for every input, which multiplied as it is adds up to 256 * B + A. A alone
 * comes of Winograd's inner product: with weights a0, a1 and inputs x0, x1,
 *   (a0 + x1) * (a1 + x0) = a0 * x0 + a1 * x1 + a0 * a1 + x0 * x1,
 * where SXTAB16 takes a out of the lane and adds x at once, the third term is a constant, and the last is the same for all
 * channels. Four channels of eight inputs are 20 instructions and 3 loads.
 *
 * The stream, in words: a head (TINYET_DSP_PAIRED_HEAD: depth, outputs, rows, offset, two-sided), then for each four outputs
 * a, b, c, d (zeros where there are fewer):
 *   256 * bias b + bias a | bias a - constant | the same of d and c |
 *   for each eight inputs 0 … 7: lanes (b, a) of (0, 2), of (1, 3); lanes (d, c) of the same; four words of (4, 6), (5, 7) |
 *   multiplier a, doubled without its highest bit | multiplier b | the same of c and d | bytes 2^(9 - shift b),
 *   2^(8 - shift a), 2^(9 - shift d), 2^(8 - shift c), of shifts less the exponent.
 * offset = 2^(exponent - 1) + (zero_point << exponent). The requantization is that of TWO_SIDED in tinyet_dsp.h, or without
 * its correction of negative sums; its shift to the right is done by SMLAW as far as channels differ in it, then by SSAT. */
#ifndef TINYET_DSP_LINEAR_PAIRED_H
#define TINYET_DSP_LINEAR_PAIRED_H

#include "tinyet_dsp_conv2d.h"

/* Eight inputs a time in the loop, so often in a turn of it. */
enum { TINYET_DSP_PAIRED_HEAD = 5, TINYET_DSP_PAIRED_TURN = 8 };

/* What the loops have no registers for, in the order that they read it in. */
typedef struct {
  int32_t start; /* minus the sum of all x0 * x1 */
  const uint32_t *inputs;
  int32_t offset;
  int32_t half; /* 64: what rounds the upper word of 256 * B * multiplier */
  int8_t *output, *end;
  const uint32_t *inputs_end;
  int32_t skipped; /* bytes of code that the first turn leaves out */
  int32_t two_sided;
  const int32_t *weights;
} tinyet_dsp_paired;

#if TINYET_DSP_ASM
/* r4 … r7: the sums of both channels and of the first, twice; r8 … r11: inputs; r12: weights; lr: inputs. */
#define TINYET_DSP_PAIRED_QUAD(x0, x1)       \
  "ldmia.w r12!, {r0, r1, r2, r3}\n"         \
  "smlad r4, r0, " x0 ", r4\n"               \
  "smlad r4, r1, " x1 ", r4\n"               \
  "sxtab16 r0, " x1 ", r0\n"                 \
  "sxtab16 r1, " x0 ", r1\n"                 \
  "smlad r5, r0, r1, r5\n"                   \
  "smlad r6, r2, " x0 ", r6\n"               \
  "smlad r6, r3, " x1 ", r6\n"               \
  "sxtab16 r2, " x1 ", r2\n"                 \
  "sxtab16 r3, " x0 ", r3\n"                 \
  "smlad r7, r2, r3, r7\n"
#define TINYET_DSP_PAIRED_STORE(exponent)    \
  "smlawb r5, r5, r1, r9\n"                  \
  "smlawb r4, r4, r0, r9\n"                  \
  "smlawt r7, r7, r1, r9\n"                  \
  "smlawt r6, r6, r0, r9\n"                  \
  "ssat r5, #8, r5, asr " exponent "\n"      \
  "strb r5, [r11], #1\n"                     \
  "ssat r4, #8, r4, asr " exponent "\n"      \
  "strb r4, [r11], #1\n"                     \
  "ssat r7, #8, r7, asr " exponent "\n"      \
  "strb r7, [r11], #1\n"                     \
  "ssat r6, #8, r6, asr " exponent "\n"      \
  "strb r6, [r11], #1\n"                     \
  "str r11, [sp, #16]\n"                     \
  "cmp r11, lr\n"                            \
  "bne 1b\n"

/* Four outputs at a time, of all inputs of a row. */
TINYET_DSP_INLINE void tinyet_dsp_paired_outputs(const tinyet_dsp_paired *row, const int32_t exponent) {
  /* r7 may be the frame pointer, which is not to be named among the registers that are lost. row is in r0 or r7. */
  __asm__ volatile(
      "push {r0, r7}\n"
      "ldr r12, [%[row], #36]\n"
      "ldr r10, [%[row], #32]\n"
      "ldmia.w %[row], {r0, r1, r2, r3, r4, r5, r6, r8}\n"
      "adr.w r9, 2f\n"
      "add r8, r8, r9\n"
      "orr r8, r8, #1\n" /* a Thumb address */
      "adr.w r9, 3f\n"
      "adr.w r11, 4f\n"
      "cmp r10, #0\n"
      "it ne\n"
      "movne r9, r11\n"
      "orr r9, r9, #1\n"
      "push {r0, r1, r2, r3, r4, r5, r6, r8, r9}\n"
      "1:\n"
      "ldmia.w r12!, {r4, r5, r6, r7}\n"
      "ldrd r0, lr, [sp]\n"
      "add r5, r5, r0\n"
      "add r7, r7, r0\n"
      "ldr pc, [sp, #28]\n"
      "2:\n"
      ".rept %c[turn]\n"
      "ldmia.w lr!, {r8, r9, r10, r11}\n"
      TINYET_DSP_PAIRED_QUAD("r8", "r9") TINYET_DSP_PAIRED_QUAD("r10", "r11")
      ".endr\n"
      "ldr r0, [sp, #24]\n"
      "cmp lr, r0\n"
      "bne 2b\n"
      "ldmia.w r12!, {r0, r1, r2, r3, r8}\n"
      "ldrd r9, r10, [sp, #8]\n"
      "ldrd r11, lr, [sp, #16]\n"
      "sub r4, r4, r5\n"
      "sub r6, r6, r7\n"
      "ldr pc, [sp, #32]\n"
      "3:\n"
      "smmlar r5, r5, r0, r5\n"
      "smmla r4, r4, r1, r10\n"
      "smmlar r7, r7, r2, r7\n"
      "smmla r6, r6, r3, r10\n"
      "uxtb16 r0, r8\n"
      "and r1, r8, #0xff00ff00\n"
      TINYET_DSP_PAIRED_STORE("%[exponent]")
      "b 5f\n"
      "4:\n"
      "smmlar r0, r5, r0, r5\n"
      "add r5, r0, r5, asr #31\n"
      "smmla r1, r4, r1, r10\n"
      "asr r4, r4, #31\n"
      "add r4, r1, r4, lsl #7\n"
      "smmlar r2, r7, r2, r7\n"
      "add r7, r2, r7, asr #31\n"
      "smmla r3, r6, r3, r10\n"
      "asr r6, r6, #31\n"
      "add r6, r3, r6, lsl #7\n"
      "uxtb16 r0, r8\n"
      "and r1, r8, #0xff00ff00\n"
      TINYET_DSP_PAIRED_STORE("%[exponent]")
      "5:\n"
      "add sp, sp, #36\n"
      "pop {r0, r7}\n"
      :
      : [row] "r"(row), [turn] "i"(TINYET_DSP_PAIRED_TURN), [exponent] "i"(exponent)
      : "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "memory", "cc");
}
#undef TINYET_DSP_PAIRED_QUAD
#undef TINYET_DSP_PAIRED_STORE
#else
/* value * (a half word of powers) >> 16, and `offset` */
TINYET_DSP_INLINE int32_t tinyet_dsp_smlaw(int32_t value, int32_t power, int32_t offset) {
  return offset + (int32_t)(((int64_t)value * power) >> 16);
}

TINYET_DSP_INLINE void tinyet_dsp_paired_outputs(const tinyet_dsp_paired *row, const int32_t exponent) {
  const int32_t *w = row->weights;
  int8_t *out = row->output;
  do {
    int32_t both[2] = {w[0], w[2]};
    int32_t first[2] = {(int32_t)((uint32_t)w[1] + (uint32_t)row->start), (int32_t)((uint32_t)w[3] + (uint32_t)row->start)};
    w += 4;
    for (const uint32_t *x = row->inputs; x != row->inputs_end; x += 2) {
      for (int32_t k = 0; k < 2; k++, w += 2) {
        const uint32_t u = (uint32_t)w[0], v = (uint32_t)w[1];
        both[k] = tinyet_dsp_smlad(v, x[1], tinyet_dsp_smlad(u, x[0], both[k]));
        first[k] = tinyet_dsp_smlad(tinyet_dsp_add_even(x[1], u), tinyet_dsp_add_even(x[0], v), first[k]);
      }
    }
    for (int32_t k = 0; k < 2; k++) {
      const int32_t a = first[k], b = (int32_t)((uint32_t)both[k] - (uint32_t)a);
      const int32_t powers = w[4] >> (16 * k);
      int32_t of_a = tinyet_dsp_smmlar(a, w[2 * k], a), of_b = tinyet_dsp_smmla(b, w[2 * k + 1], row->half);
      if (row->two_sided) {
        of_a -= a < 0;
        of_b -= (b < 0) << 7;
      }
      *out++ = (int8_t)tinyet_dsp_saturate(tinyet_dsp_smlaw(of_a, powers & 0xff00, row->offset) >> exponent);
      *out++ = (int8_t)tinyet_dsp_saturate(tinyet_dsp_smlaw(of_b, powers & 0xff, row->offset) >> exponent);
    }
    w += 5;
  } while (out != row->end);
}
#endif

/* Rows of inputs to rows of outputs. scratch: 16 bytes for each eight inputs of a row, or fewer. exponent: see above; ragged: whether
 * `depth` is no multiple of eight; rest: count % 4; these are literals. */
TINYET_DSP_INLINE void tinyet_dsp_linear_paired(const int8_t *input, int8_t *output, void *scratch,
                                                const int32_t *weights, const int32_t ragged, const int32_t rest,
                                                const int32_t exponent) {
  const int32_t depth = weights[0], count = weights[1], words = (depth + 7) / 8 * 4;
  const int32_t turn = 4 * TINYET_DSP_PAIRED_TURN;
  uint32_t *const wide = (uint32_t *)scratch;
  tinyet_dsp_paired row;
  row.inputs = wide;
  row.inputs_end = wide + words;
  row.offset = weights[3];
  row.half = 64;
  row.skipped = (turn - 1 - (words + turn - 1) % turn) * 23; /* 23 instructions of four bytes for each four words */
  row.two_sided = weights[4];
  for (int32_t left = weights[2]; left > 0; left--, output += count) {
    uint32_t *to = wide;
    int32_t products = 0;
    for (const int8_t *const end = input + (ragged ? depth & ~3 : depth); input != end; input += 4, to += 2) {
      const uint32_t word = tinyet_dsp_load(input);
      to[0] = tinyet_dsp_even(word);
      to[1] = tinyet_dsp_odd(word);
      products = tinyet_dsp_smlad(to[0], to[1], products);
    }
    if (ragged) {
      uint32_t word = 0;
      for (int32_t i = 0; i < (depth & 3); i++) {
        word |= (uint32_t)(uint8_t)*input++ << (8 * i);
      }
      for (; to != row.inputs_end; to += 2, word = 0) {
        to[0] = tinyet_dsp_even(word);
        to[1] = tinyet_dsp_odd(word);
        products = tinyet_dsp_smlad(to[0], to[1], products);
      }
    }
    row.start = (int32_t)(0u - (uint32_t)products);
    row.weights = weights + TINYET_DSP_PAIRED_HEAD;
    row.output = output;
    row.end = output + count - rest;
    if (rest == 0) {
      tinyet_dsp_paired_outputs(&row, exponent);
    } else {
      int8_t last[4];
      int32_t parts = count < 4 ? 1 : 2;
      do {
        if (parts == 1) {
          row.weights += (count >> 2) * (2 * words + 9);
          row.output = last;
          row.end = last + 4;
        }
        tinyet_dsp_paired_outputs(&row, exponent);
        TINYET_DSP_UNKNOWN(parts);
      } while (--parts != 0);
      memcpy(output + count - rest, last, (size_t)rest);
    }
  }
}

#endif
