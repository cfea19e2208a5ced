/* SPDX-License-Identifier: Apache-2.0 */
/* Fully connected layers with int16 activations for cores with DSP instructions (see tinyet_s16_dsp.h), one row at a time:
 * each weight is used once, so that reading and widening the weights would be most of the work.
 *
 * Of int8 weights there is for each two channels a, b and every input a lane 256 * b + a, which multiplied as it is adds up,
 * in 64 bits, to 256 * B + A; A alone comes of the lane's lower byte. So one of the two needs no instruction to widen its
 * weights. Where sums need more than 32 bits, the inputs are divided into `parts`, as in tinyet_conv2d_s16_dsp.h.
 *
 * The stream, in words: a head (tinyet_linear_s16_head_dsp), then for each four outputs a, b, c, d (zeros where there are
 * fewer), for each part (biases are zero but for the first one):
 *   int8: 256 * bias b + bias a in 64 bits | the same of d and c | bias a | bias c |
 *         for each pair of inputs: lanes (b, a), lanes (d, c)
 *   int16: bias a … d | for each pair of inputs: a, b, c, d
 * and multiplier a … d, which stands before the parts where there are several. */
#ifndef TINYET_LINEAR_S16_DSP_H
#define TINYET_LINEAR_S16_DSP_H

#include "tinyet_conv2d_dsp.h"
#include "tinyet_linear_steps_dsp.h"
#include "tinyet_s16_dsp.h"

typedef struct {
  int32_t eights; /* inputs of a part, rounded up to a multiple of eight, by eight */
  int32_t depth;  /* inputs */
  int32_t count;  /* outputs, rounded down to a multiple of four */
} tinyet_linear_s16_head_dsp;

#if TINYET_DSP_ASM
#define TINYET_DSP_LANES_OF_FOUR       \
  "ldrd r8, r9, [r0], #8\n"            \
  "ldmia.w r1!, {r10, r11, r12, lr}\n" \
  "smlald r2, r3, r10, r8\n"           \
  "sxtb16 r10, r10\n"                  \
  "smlad r6, r10, r8, r6\n"            \
  "smlald r4, r5, r11, r8\n"           \
  "sxtb16 r11, r11\n"                  \
  "smlad r7, r11, r8, r7\n"            \
  "smlald r2, r3, r12, r9\n"           \
  "sxtb16 r12, r12\n"                  \
  "smlad r6, r12, r9, r6\n"            \
  "smlald r4, r5, lr, r9\n"            \
  "sxtb16 lr, lr\n"                    \
  "smlad r7, lr, r9, r7\n"
/* A … D of 256 * B + A, 256 * D + C, A and C. */
#define TINYET_DSP_LANES_APART   \
  "subs r2, r2, r6\n"            \
  "sbc r3, r3, r6, asr #31\n"    \
  "lsr r2, r2, #8\n"             \
  "orr r3, r2, r3, lsl #24\n"    \
  "mov r2, r6\n"                 \
  "subs r4, r4, r7\n"            \
  "sbc r5, r5, r7, asr #31\n"    \
  "lsr r4, r4, #8\n"             \
  "orr r5, r4, r5, lsl #24\n"    \
  "mov r4, r7\n"
#define TINYET_DSP_WIDE_OF_TWO(x)      \
  "ldmia.w r1!, {r10, r11, r12, lr}\n" \
  "smlad r2, r10, " x ", r2\n"         \
  "smlad r3, r11, " x ", r3\n"         \
  "smlad r4, r12, " x ", r4\n"         \
  "smlad r5, lr, " x ", r5\n"
#define TINYET_DSP_WIDE_OF_EIGHT                                                                                      \
  "ldmia.w r0!, {r6, r7, r8, r9}\n" TINYET_DSP_WIDE_OF_TWO("r6") TINYET_DSP_WIDE_OF_TWO("r7")                        \
      TINYET_DSP_WIDE_OF_TWO("r8") TINYET_DSP_WIDE_OF_TWO("r9")
/* clang-format off */
/* tinyet_round_s16_dsp of a sum. */
#define TINYET_DSP_ROUND_SUM(sum, multiplier) \
  ".if %c[exponent]\n" \
  "smmla " sum ", " sum ", " multiplier ", lr\n" \
  ".else\n" \
  "smmulr " sum ", " sum ", " multiplier "\n" \
  ".endif\n" \
  ".if %c[low] >= 0 && %c[exponent]\n" \
  "usat " sum ", #15, " sum ", asr #%c[exponent]\n" \
  ".elseif %c[low] >= 0\n" \
  "usat " sum ", #15, " sum "\n" \
  ".elseif %c[exponent]\n" \
  "ssat " sum ", #16, " sum ", asr #%c[exponent]\n" \
  ".else\n" \
  "ssat " sum ", #16, " sum "\n" \
  ".endif\n" \
  ".if %c[low] != 0 && %c[low] != -32768\n" \
  "cmp " sum ", r6\n" \
  "it lt\n" \
  "movlt " sum ", r6\n" \
  ".endif\n" \
  ".if %c[high] != 32767\n" \
  "cmp " sum ", r7\n" \
  "it gt\n" \
  "movgt " sum ", r7\n" \
  ".endif\n" \
  "strh " sum ", [r0], #2\n"
#define TINYET_DSP_ROUND_SUMS \
  ".if %c[finish]\n" \
  "ldmia.w r1!, {r8, r9, r10, r11}\n" \
  "ldr r0, [r12]\n" \
  ".if %c[exponent]\n" \
  "movw lr, #1 << (%c[exponent] - 1)\n" \
  ".endif\n" \
  ".if %c[low] != 0 && %c[low] != -32768\n" \
  "movw r6, #%c[low] & 0xffff\n" \
  "sxth r6, r6\n" \
  ".endif\n" \
  ".if %c[high] != 32767\n" \
  "movw r7, #%c[high] & 0xffff\n" \
  "sxth r7, r7\n" \
  ".endif\n" \
  TINYET_DSP_ROUND_SUM("r2", "r8") \
  TINYET_DSP_ROUND_SUM("r3", "r9") \
  TINYET_DSP_ROUND_SUM("r4", "r10") \
  TINYET_DSP_ROUND_SUM("r5", "r11") \
  "str r0, [r12]\n" \
  ".else\n" \
  "add r0, r12, #4\n" \
  "stmia r0!, {r2, r3, r4, r5}\n" \
  ".endif\n"
#define TINYET_DSP_ROUNDING_OPERANDS(finished, rounding) \
  , [finish] "i"(finished), [exponent] "i"((rounding).exponent), [low] "i"((rounding).low), [high] "i"((rounding).high)
/* clang-format on */
#endif

/* Sums of four outputs over the inputs of a part, from the weights at p->weights on, which it leaves behind: where `finish`
 * says so, rounded, to p->output, which it leaves behind, too; else to p->results. */
TINYET_DSP_INLINE void tinyet_part_sums_dsp(tinyet_row_sums_dsp *p, const int32_t kind, const int32_t finish,
                                            const tinyet_rounding_s16_dsp rounding) {
#if TINYET_DSP_ASM
  if (kind == TINYET_DSP_INT16) {
    TINYET_DSP_SUM_STEPS(p, "r2, r3, r4, r5", "", TINYET_DSP_WIDE_OF_EIGHT, TINYET_DSP_ROUND_SUMS,
                         TINYET_DSP_ROUNDING_OPERANDS(finish, rounding));
  } else {
    TINYET_DSP_SUM_STEPS(p, "r2, r3, r4, r5, r6, r7", "", TINYET_DSP_LANES_OF_FOUR TINYET_DSP_LANES_OF_FOUR,
                         TINYET_DSP_LANES_APART TINYET_DSP_ROUND_SUMS,
                         TINYET_DSP_ROUNDING_OPERANDS(finish, rounding));
  }
#else
  int32_t sums[4];
  if (kind == TINYET_DSP_INT16) {
    memcpy(sums, p->weights, sizeof sums);
    p->weights += 4;
    for (const uint32_t *x = p->inputs; x != p->end; x++) {
      for (int32_t k = 0; k < 4; k++) {
        sums[k] = tinyet_smlad_dsp((uint32_t)*p->weights++, *x, sums[k]);
      }
    }
  } else {
    int64_t both[2];
    memcpy(both, p->weights, sizeof both);
    sums[0] = p->weights[4];
    sums[2] = p->weights[5];
    p->weights += 6;
    for (const uint32_t *x = p->inputs; x != p->end; x++) {
      for (int32_t k = 0; k < 2; k++) {
        const uint32_t lanes = (uint32_t)*p->weights++;
        both[k] += (int64_t)tinyet_half_dsp(lanes, 0) * tinyet_half_dsp(*x, 0);
        both[k] += (int64_t)tinyet_half_dsp(lanes, 1) * tinyet_half_dsp(*x, 1);
        sums[2 * k] = tinyet_smlad_dsp(tinyet_even_bytes_dsp(lanes), *x, sums[2 * k]);
      }
    }
    sums[1] = (int32_t)((both[0] - sums[0]) >> 8);
    sums[3] = (int32_t)((both[1] - sums[2]) >> 8);
  }
  int16_t *const out = (int16_t *)p->output;
  for (int32_t k = 0; k < 4; k++) {
    if (finish) {
      tinyet_store_s16_dsp(out + k, tinyet_round_s16_dsp(sums[k], *p->weights++, rounding));
      p->output = out + k + 1;
    } else {
      p->results[k] = sums[k];
    }
  }
#endif
}
#if TINYET_DSP_ASM
#undef TINYET_DSP_LANES_OF_FOUR
#undef TINYET_DSP_LANES_APART
#undef TINYET_DSP_WIDE_OF_TWO
#undef TINYET_DSP_WIDE_OF_EIGHT
#undef TINYET_DSP_ROUND_SUM
#undef TINYET_DSP_ROUND_SUMS
#undef TINYET_DSP_ROUNDING_OPERANDS
#endif

/* A row of inputs as whole steps, with zeros behind. */
TINYET_DSP_INLINE void tinyet_put_row_dsp(uint32_t *to, const int16_t *from, int32_t depth, const uint32_t *end) {
  for (; depth >= 8; depth -= 8, from += 8, to += 4) {
    TINYET_DSP_UNKNOWN(depth); /* or it becomes a call of memcpy */
    tinyet_put_int16x2_dsp(to, from, 8, 1);
  }
  for (; depth >= 2; depth -= 2, from += 2) {
    TINYET_DSP_UNKNOWN(depth);
    *to++ = tinyet_load_int16x2_dsp(from);
  }
  if (depth != 0) {
    *to++ = (uint16_t)*from;
  }
  for (; to != end; to++) {
    TINYET_DSP_UNKNOWN(to);
    *to = 0;
  }
}

/* Outputs of four channels, whose weights are at p->weights, to p->output. words: of the inputs of a part. */
TINYET_DSP_INLINE void tinyet_four_outputs_s16_dsp(tinyet_row_sums_dsp *p, const uint32_t *inputs, int32_t words,
                                                   const int32_t kind, const int32_t parts,
                                                   const tinyet_rounding_s16_dsp rounding) {
  if (parts == 1) {
    tinyet_part_sums_dsp(p, kind, 1, rounding);
    return;
  }
  const int32_t *const m = p->weights;
  int64_t totals[4];
  for (int32_t k = 0; k < 4; k++) {
    totals[k] = tinyet_half_s16_dsp(rounding);
  }
  p->weights += 4;
  p->inputs = inputs;
  for (int32_t part = 0; part < parts; part++, p->inputs = p->end) {
    TINYET_DSP_UNKNOWN(part);
    p->end = p->inputs + words;
    tinyet_part_sums_dsp(p, kind, 0, rounding);
    for (int32_t k = 0; k < 4; k++) {
      totals[k] += (int64_t)p->results[k] * m[k];
    }
  }
  int16_t *out = (int16_t *)p->output;
  for (int32_t k = 0; k < 4; k++) {
    tinyet_store_s16_dsp(out++, tinyet_clamp_s16_dsp((int32_t)(totals[k] >> 32), rounding));
  }
  p->output = out;
}

/* Rows of inputs to rows of outputs. scratch: 16 bytes for each eight inputs of all parts.
 * kind: TINYET_DSP_INT8 or TINYET_DSP_INT16; rest: outputs % 4; all but pointers are literals. */
TINYET_DSP_INLINE void tinyet_linear_s16_1x4_dsp(const int16_t *input, int16_t *output, void *scratch,
                                                 const int32_t *weights, const int32_t kind, const int32_t parts,
                                                 const int32_t rows, const int32_t rest,
                                                 const tinyet_rounding_s16_dsp rounding) {
  tinyet_linear_s16_head_dsp head;
  memcpy(&head, weights, sizeof head);
  uint32_t *const inputs = (uint32_t *)scratch;
  const int32_t words = 4 * head.eights;
  tinyet_row_sums_dsp p;
  p.inputs = inputs;
  p.end = inputs + words;
  p.skipped = tinyet_skipped_dsp(head.eights) * (kind == TINYET_DSP_INT16 ? 84 : 112);
  for (int32_t row = 0; row < rows; row++) {
    tinyet_put_row_dsp(inputs, input, head.depth, inputs + parts * words);
    input += head.depth;
    p.weights = weights + sizeof head / sizeof *weights;
    int16_t last[4];
    p.output = output;
    output += head.count;
    const int16_t *end = output;
    for (int32_t left = rest != 0;; left--) {
      while (p.output != end) {
        tinyet_four_outputs_s16_dsp(&p, inputs, words, kind, parts, rounding);
      }
      if (rest == 0 || left == 0) {
        break;
      }
      p.output = last; /* the last four outputs, of which fewer are there */
      end = last + 4;
    }
    for (int32_t k = 0; k < rest; k++) {
      tinyet_store_s16_dsp(output++, last[k]);
    }
  }
}

#endif
