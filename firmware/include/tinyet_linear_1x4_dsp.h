/* SPDX-License-Identifier: Apache-2.0 */
/* Fully connected layers for cores with DSP instructions (see tinyet_dsp.h), one row at a time: each weight is used once,
 * so that reading and widening the weights would be most of the work.
 *
 * PACKED does not widen them: of each two channels a, b there is a lane 256 * b + a for every input, which multiplied as it
 * is adds up to 256 * B + A. A alone comes of Winograd's inner product: with weights a0, a1 and inputs x0, x1,
 *   (a0 + x1) * (a1 + x0) = a0 * x0 + a1 * x1 + a0 * a1 + x0 * x1,
 * where SXTAB16 takes a out of the lane and adds x at once, the third term is a constant, and the last is the same for all
 * channels. Four channels of eight inputs are 20 instructions and 3 loads. WIDE has weights of int16, shifted as
 * tinyet_before_dsp says: 16 instructions and 5 loads, and twice the flash.
 *
 * The stream, in words: a head (tinyet_row_head_dsp), then for each four outputs a, b, c, d (zeros where there are fewer):
 * PACKED: 256 * bias b + bias a | bias a - constant | the same of d and c |
 *   for each eight inputs 0 … 7: lanes (b, a) of (0, 2), of (1, 3); lanes (d, c) of the same; the same of (4, 6), (5, 7) |
 *   multiplier a, doubled without its highest bit | multiplier b | the same of c and d | bytes 2^(9 - shift b),
 *   2^(8 - shift a), 2^(9 - shift d), 2^(8 - shift c), of shifts less the exponent.
 *   The requantization is that of TWO_SIDED in tinyet_dsp.h, or without its correction of negative sums; its shift to the
 *   right is done by SMLAW as far as channels differ in it, then by SSAT.
 * WIDE: bias a … d, shifted | for each eight inputs: a … d of (0, 2), of (1, 3), of (4, 6), of (5, 7) |
 *   multiplier a … d | offset a … d | shift a … d where the form is TWO_SIDED. */
#ifndef TINYET_LINEAR_1X4_DSP_H
#define TINYET_LINEAR_1X4_DSP_H

#include "tinyet_conv2d_dsp.h"

/* Eight inputs a time in the loop, so often in a turn of it; bytes of code that they need. */
enum { TINYET_DSP_ROW_TURN = 9, TINYET_DSP_PACKED_CODE = 88, TINYET_DSP_WIDE_CODE = 76 };

/* eights: so many times eight inputs, rounded up, are in the first turn; turns: how many follow. */
typedef struct {
  int32_t eights, turns;
  int32_t count; /* outputs, rounded down to a multiple of four */
  int32_t offset; /* 2^(exponent - 1) + (zero_point << exponent); here and below: PACKED */
  int32_t signs;  /* 20 where negative sums are corrected: the bytes of code that do it; or 0 */
} tinyet_row_head_dsp;

/* Values that the loops have no registers for, in the order in which they are read. */
typedef struct {
  int32_t offset;
  int32_t half; /* 64: what rounds the upper word of 256 * B * multiplier */
  int8_t *output, *end;
  int32_t start; /* minus the sum of all x0 * x1 */
  const uint32_t *inputs;
  int32_t skipped; /* bytes of code that the first turn leaves out */
  int32_t signs;
  const int32_t *weights;
} tinyet_row_dsp;

#if TINYET_DSP_ASM
/* The addresses of Thumb code are odd. ADR counts from a multiple of four: without an alignment Clang puts functions at any
 * even address, and the assembler knows no better. r7 may be the frame pointer, which is not to be named among the registers that are
 * lost; row is in r0 or r7. */
#define TINYET_DSP_ROW_ENTER \
  TINYET_DSP_LINES           \
  ".p2align 2\n"             \
  "push {r0, r7}\n" \
  "ldr r12, [%[row], #32]\n" \
  "ldmia.w %[row], {r0, r1, r2, r3, r4, r5, r6, r8}\n" \
  "mov r7, r12\n" \
  "adr.w r9, 2f + 1\n" \
  "add r6, r6, r9\n" \
  "adr.w r9, 4f + 1\n" \
  "sub r8, r9, r8\n" \
  "push {r0, r1, r2, r3, r4, r5, r6, r8}\n"
#define TINYET_DSP_ROW_LEAVE \
  "add sp, sp, #32\n"        \
  "pop {r0, r7}\n"
#define TINYET_DSP_ROW_LOST "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "memory", "cc"
/* r4, r6: 256 * B + A of both pairs; r5, r8: A; r9 … r12: inputs; r7: where the weights are; lr: where the inputs are. */
#define TINYET_DSP_PACKED_FOUR(x0, x1) \
  "ldmia.n r7!, {r0, r1, r2, r3}\n"    \
  "smlad r4, r0, " x0 ", r4\n"         \
  "smlad r4, r1, " x1 ", r4\n"         \
  "sxtab16 r0, " x1 ", r0\n"           \
  "sxtab16 r1, " x0 ", r1\n"           \
  "smlad r5, r0, r1, r5\n"             \
  "smlad r6, r2, " x0 ", r6\n"         \
  "smlad r6, r3, " x1 ", r6\n"         \
  "sxtab16 r2, " x1 ", r2\n"           \
  "sxtab16 r3, " x0 ", r3\n"           \
  "smlad r8, r2, r3, r8\n"

/* Four outputs at a time, of all inputs of a row. Before the last eight inputs of a turn is a word that is not zero where
 * another turn follows. */
TINYET_DSP_INLINE void tinyet_packed_outputs_dsp(const tinyet_row_dsp *row, const int32_t exponent) {
  __asm__ volatile(
      TINYET_DSP_ROW_ENTER
      "1:\n"
      "ldmia.w r7!, {r4, r5, r6, r8}\n"
      "ldrd r0, lr, [sp, #16]\n"
      "adds r5, r5, r0\n"
      "add r8, r8, r0\n"
      "ldr pc, [sp, #24]\n"
      "2:\n"
      ".rept %c[turn] - 1\n"
      "ldmia.w lr!, {r9, r10, r11, r12}\n" TINYET_DSP_PACKED_FOUR("r9", "r10") TINYET_DSP_PACKED_FOUR("r11", "r12")
      ".endr\n"
      "ldmia.w lr!, {r3, r9, r10, r11, r12}\n"
      "cmp r3, #0\n" TINYET_DSP_PACKED_FOUR("r9", "r10") TINYET_DSP_PACKED_FOUR("r11", "r12")
      "bne 2b\n"
      "ldmia.w r7!, {r0, r1, r2, r3, r9}\n"
      "ldmia.w sp, {r10, r11, r12, lr}\n"
      "subs r4, r4, r5\n"
      "sub r6, r6, r8\n"
      "smmlar r0, r5, r0, r5\n"
      "smmla r1, r4, r1, r11\n"
      "smmlar r2, r8, r2, r8\n"
      "smmla r3, r6, r3, r11\n"
      "ldr pc, [sp, #28]\n"
      "3:\n"
      "add r0, r0, r5, asr #31\n"
      "asrs r4, r4, #31\n"
      "add r1, r1, r4, lsl #7\n"
      "add r2, r2, r8, asr #31\n"
      "asrs r6, r6, #31\n"
      "add r3, r3, r6, lsl #7\n"
      "4:\n"
      "uxtb16 r5, r9\n"
      "and r4, r9, #0xff00ff00\n"
      "smlawb r0, r0, r4, r10\n"
      "smlawb r1, r1, r5, r10\n"
      "smlawt r2, r2, r4, r10\n"
      "smlawt r3, r3, r5, r10\n"
      "ssat r0, #8, r0, asr %[exponent]\n"
      "strb r0, [r12], #1\n"
      "ssat r1, #8, r1, asr %[exponent]\n"
      "strb r1, [r12], #1\n"
      "ssat r2, #8, r2, asr %[exponent]\n"
      "strb r2, [r12], #1\n"
      "ssat r3, #8, r3, asr %[exponent]\n"
      "strb r3, [r12], #1\n"
      "str r12, [sp, #8]\n"
      "cmp r12, lr\n"
      "bne 1b\n"
      TINYET_DSP_ROW_LEAVE
      :
      : [row] "r"(row), [turn] "i"(TINYET_DSP_ROW_TURN), [exponent] "i"(exponent)
      : TINYET_DSP_ROW_LOST);
}
/* r4, r5, r6, r8: sums; the rest as above. */
#define TINYET_DSP_WIDE_PAIR(x)        \
  "ldmia.n r7!, {r0, r1, r2, r3}\n"    \
  "smlad r4, r0, " x ", r4\n"          \
  "smlad r5, r1, " x ", r5\n"          \
  "smlad r6, r2, " x ", r6\n"          \
  "smlad r8, r3, " x ", r8\n"
#define TINYET_DSP_WIDE_EIGHT                                                                            \
  TINYET_DSP_WIDE_PAIR("r9") TINYET_DSP_WIDE_PAIR("r10") TINYET_DSP_WIDE_PAIR("r11") TINYET_DSP_WIDE_PAIR("r12")
#define TINYET_DSP_WIDE_SUMS                                          \
  TINYET_DSP_ROW_ENTER                                                \
  "1:\n"                                                              \
  "ldmia.w r7!, {r4, r5, r6, r8}\n"                                   \
  "ldr lr, [sp, #20]\n"                                               \
  "ldr pc, [sp, #24]\n"                                               \
  "2:\n"                                                              \
  ".rept %c[turn] - 1\n"                                              \
  "ldmia.w lr!, {r9, r10, r11, r12}\n" TINYET_DSP_WIDE_EIGHT ".endr\n" \
  "ldmia.w lr!, {r3, r9, r10, r11, r12}\n"                            \
  "cmp r3, #0\n" TINYET_DSP_WIDE_EIGHT                                \
  "bne 2b\n"                                                          \
  "4:\n"                                                              \
  "ldmia.n r7!, {r0, r1, r2, r3}\n"                                   \
  "ldmia.w r7!, {r9, r10, r11, r12}\n"
#define TINYET_DSP_WIDE_STORE(shift)      \
  "ldrd r9, r10, [sp, #8]\n"              \
  "ssat r0, #8, r0" shift "\n"            \
  "strb r0, [r9], #1\n"                   \
  "ssat r1, #8, r1" shift "\n"            \
  "strb r1, [r9], #1\n"                   \
  "ssat r2, #8, r2" shift "\n"            \
  "strb r2, [r9], #1\n"                   \
  "ssat r3, #8, r3" shift "\n"            \
  "strb r3, [r9], #1\n"                   \
  "str r9, [sp, #8]\n"                    \
  "cmp r9, r10\n"                         \
  "bne 1b\n" TINYET_DSP_ROW_LEAVE

/* The same with wide weights. */
TINYET_DSP_INLINE void tinyet_wide_outputs_dsp(const tinyet_row_dsp *row, const tinyet_rounding_dsp rounding) {
  if (rounding.form == TINYET_DSP_ONE_SIDED) {
    __asm__ volatile(TINYET_DSP_WIDE_SUMS
                     "smmla r0, r4, r0, r9\n"
                     "smmla r1, r5, r1, r10\n"
                     "smmla r2, r6, r2, r11\n"
                     "smmla r3, r8, r3, r12\n" TINYET_DSP_WIDE_STORE(", asr %[exponent]")
                     :
                     : [row] "r"(row), [turn] "i"(TINYET_DSP_ROW_TURN), [exponent] "i"(rounding.exponent)
                     : TINYET_DSP_ROW_LOST);
  } else {
    __asm__ volatile(TINYET_DSP_WIDE_SUMS
                     "smmlar r0, r4, r0, r9\n"
                     "smmlar r1, r5, r1, r10\n"
                     "smmlar r2, r6, r2, r11\n"
                     "smmlar r3, r8, r3, r12\n"
                     "ldmia.w r7!, {r9, r10, r11, r12}\n"
                     "add r0, r0, r4, asr #31\n"
                     "add r1, r1, r5, asr #31\n"
                     "add r2, r2, r6, asr #31\n"
                     "add r3, r3, r8, asr #31\n"
                     "asr r0, r0, r9\n"
                     "asr r1, r1, r10\n"
                     "asr r2, r2, r11\n"
                     "asr r3, r3, r12\n" TINYET_DSP_WIDE_STORE("")
                     :
                     : [row] "r"(row), [turn] "i"(TINYET_DSP_ROW_TURN)
                     : TINYET_DSP_ROW_LOST);
  }
}
#undef TINYET_DSP_PACKED_FOUR
#undef TINYET_DSP_WIDE_PAIR
#undef TINYET_DSP_WIDE_EIGHT
#undef TINYET_DSP_WIDE_SUMS
#undef TINYET_DSP_WIDE_STORE
#undef TINYET_DSP_ROW_ENTER
#undef TINYET_DSP_ROW_LEAVE
#undef TINYET_DSP_ROW_LOST
#else
/* value * (a half word of powers) >> 16, and `offset` */
TINYET_DSP_INLINE int32_t tinyet_smlaw_dsp(int32_t value, int32_t power, int32_t offset) {
  return offset + (int32_t)(((int64_t)value * power) >> 16);
}

TINYET_DSP_INLINE void tinyet_packed_outputs_dsp(const tinyet_row_dsp *row, const int32_t exponent) {
  const int32_t *w = row->weights;
  int8_t *out = row->output;
  do {
    int32_t both[2] = {w[0], w[2]};
    const uint32_t start = (uint32_t)row->start;
    int32_t first[2] = {(int32_t)((uint32_t)w[1] + start), (int32_t)((uint32_t)w[3] + start)};
    w += 4;
    const uint32_t *x = row->inputs;
    for (int32_t left = TINYET_DSP_ROW_TURN - row->skipped / TINYET_DSP_PACKED_CODE; left > 0; left--) {
      if (left == 1) {
        left += *x++ != 0 ? TINYET_DSP_ROW_TURN : 0;
      }
      for (int32_t quad = 0; quad < 2; quad++, x += 2) {
        for (int32_t k = 0; k < 2; k++, w += 2) {
          const uint32_t u = (uint32_t)w[0], v = (uint32_t)w[1];
          both[k] = tinyet_smlad_dsp(v, x[1], tinyet_smlad_dsp(u, x[0], both[k]));
          first[k] = tinyet_smlad_dsp(tinyet_add_even_bytes_dsp(x[1], u), tinyet_add_even_bytes_dsp(x[0], v), first[k]);
        }
      }
    }
    for (int32_t k = 0; k < 2; k++) {
      const int32_t a = first[k], b = (int32_t)((uint32_t)both[k] - (uint32_t)a);
      const int32_t powers = w[4] >> (16 * k);
      int32_t of_a = tinyet_smmlar_dsp(a, w[2 * k], a), of_b = tinyet_smmla_dsp(b, w[2 * k + 1], row->half);
      if (row->signs != 0) {
        of_a -= a < 0;
        of_b -= (b < 0) << 7;
      }
      *out++ = (int8_t)tinyet_saturate_dsp(tinyet_smlaw_dsp(of_a, powers & 0xff00, row->offset) >> exponent);
      *out++ = (int8_t)tinyet_saturate_dsp(tinyet_smlaw_dsp(of_b, powers & 0xff, row->offset) >> exponent);
    }
    w += 5;
  } while (out != row->end);
}
TINYET_DSP_INLINE void tinyet_wide_outputs_dsp(const tinyet_row_dsp *row, const tinyet_rounding_dsp rounding) {
  const int32_t *w = row->weights;
  int8_t *out = row->output;
  do {
    int32_t sums[4] = {w[0], w[1], w[2], w[3]};
    w += 4;
    const uint32_t *x = row->inputs;
    for (int32_t left = TINYET_DSP_ROW_TURN - row->skipped / TINYET_DSP_WIDE_CODE; left > 0; left--) {
      if (left == 1) {
        left += *x++ != 0 ? TINYET_DSP_ROW_TURN : 0;
      }
      for (int32_t pair = 0; pair < 4; pair++, x++) {
        for (int32_t k = 0; k < 4; k++) {
          sums[k] = tinyet_smlad_dsp((uint32_t)*w++, *x, sums[k]);
        }
      }
    }
    const int32_t two_sided = rounding.form == TINYET_DSP_TWO_SIDED;
    for (int32_t k = 0; k < 4; k++) {
      *out++ = tinyet_round_shifted_dsp(sums[k], w[k], w[4 + k], two_sided ? w[8 + k] : 0, rounding);
    }
    w += two_sided ? 12 : 8;
  } while (out != row->end);
}
#endif

/* Eight inputs as pairs (0, 2), (1, 3), (4, 6), (5, 7); returns `products` with those of (0, 1), (2, 3), … added. */
#if TINYET_DSP_ASM
#define TINYET_DSP_WIDEN_EIGHT(to, from, products)                       \
  __asm__("ldr r4, [%[source]], #4\n"                                    \
          "ldr r6, [%[source]], #4\n"                                    \
          "sxtb16 r5, r4, ror #8\n"                                      \
          "sxtb16 r4, r4\n"                                              \
          "smlad %[sum], r4, r5, %[sum]\n"                               \
          "sxtb16 r8, r6, ror #8\n"                                      \
          "sxtb16 r6, r6\n"                                              \
          "smlad %[sum], r6, r8, %[sum]\n"                               \
          "stmia.w %[target]!, {r4, r5, r6, r8}\n"                       \
          : [source] "+r"(from), [target] "+r"(to), [sum] "+r"(products) \
          :                                                              \
          : "r4", "r5", "r6", "r8", "memory")
#else
#define TINYET_DSP_WIDEN_EIGHT(to, from, products)                          \
  do {                                                                      \
    for (int32_t half_ = 0; half_ < 8; half_ += 4, to += 2) {               \
      const uint32_t word_ = tinyet_load_dsp(from);                         \
      to[0] = tinyet_even_bytes_dsp(word_);                                       \
      to[1] = tinyet_odd_bytes_dsp(word_);                                        \
      products = tinyet_smlad_dsp(to[0], to[1], products);                  \
      from += 4;                                                            \
    }                                                                       \
  } while (0)
#endif

TINYET_DSP_INLINE void tinyet_row_outputs_dsp(const tinyet_row_dsp *row, const int32_t wide,
                                              const tinyet_rounding_dsp rounding) {
  if (wide) {
    tinyet_wide_outputs_dsp(row, rounding);
  } else {
    tinyet_packed_outputs_dsp(row, rounding.exponent);
  }
}

/* Rows of inputs to rows of outputs. scratch: 16 bytes for each eight inputs of a row, rounded up, and 4 for each turn.
 * wide: WIDE, or PACKED, of whose rounding the form is not looked at; odd: depth % 8; rest: outputs % 4; all literals. */
TINYET_DSP_INLINE void tinyet_linear_1x4_dsp(const int8_t *input, int8_t *output, void *scratch, const int32_t *weights,
                                             const int32_t wide, const int32_t rows, const int32_t odd,
                                             const int32_t rest, const tinyet_rounding_dsp rounding) {
  const int32_t code = wide ? TINYET_DSP_WIDE_CODE : TINYET_DSP_PACKED_CODE;
  tinyet_row_head_dsp head;
  memcpy(&head, weights, sizeof head);
  tinyet_row_dsp row;
  row.offset = head.offset;
  row.half = 64;
  row.inputs = (const uint32_t *)scratch;
  row.skipped = (TINYET_DSP_ROW_TURN - head.eights) * code;
  row.signs = head.signs;
  for (int32_t i = 0; i < rows; i++) {
    uint32_t *to = (uint32_t *)scratch;
    int32_t products = 0;
    for (int32_t eights = head.eights, turns = head.turns;; turns--, eights = TINYET_DSP_ROW_TURN) {
      while (--eights != 0) {
        TINYET_DSP_WIDEN_EIGHT(to, input, products);
      }
      *to = (uint32_t)turns;
      to++;
      TINYET_DSP_UNKNOWN(to); /* or GCC keeps it twice */
      if (odd == 0 || turns != 0) {
        TINYET_DSP_WIDEN_EIGHT(to, input, products);
      }
      if (turns == 0) {
        break;
      }
    }
    if (odd != 0) {
      int8_t last[8] = {0};
      const int8_t *from = last;
      memcpy(last, input, (size_t)odd);
      input += odd;
      TINYET_DSP_WIDEN_EIGHT(to, from, products);
    }
    row.start = (int32_t)(0u - (uint32_t)products);
    row.weights = weights + sizeof head / sizeof *weights;
    row.output = output;
    row.end = output + head.count;
    output += head.count;
    if (rest == 0) {
      tinyet_row_outputs_dsp(&row, wide, rounding);
    } else {
      int8_t last[4];
      int32_t left = head.count == 0 ? 1 : 2;
      do {
        if (left == 1) {
          const int32_t eights = head.eights + head.turns * TINYET_DSP_ROW_TURN;
          const int32_t ends = wide ? (rounding.form == TINYET_DSP_TWO_SIDED ? 16 : 12) : 9;
          row.weights += (head.count >> 2) * ((wide ? 16 : 8) * eights + ends);
          row.output = last;
          row.end = last + 4;
        }
        tinyet_row_outputs_dsp(&row, wide, rounding);
        TINYET_DSP_UNKNOWN(left);
      } while (--left != 0);
      memcpy(output, last, (size_t)rest);
      output += rest;
    }
  }
}

#endif
