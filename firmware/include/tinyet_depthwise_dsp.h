/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised int8 depthwise convolutions for cores with DSP instructions, on planes of int16: see tinyet_depthwise_chw_dsp.h.
 *
 * tinyet_depthwise_s8_chw_3x3_dsp: dilation_u 1, stride_u 1 or 2, multiplier 1. Word j of a plane's row holds the inputs
 *   u = 2 * j - pad_u and the one behind it. The weight stream, in words, for each channel:
 *   three kernel rows along u: bytes {w0, x, w1, w2}, the first row's x is the shift, | bias | multiplier
 * tinyet_depthwise_s8_w16_chw_3x3_dsp: the same. The weight stream, in words, for each channel:
 *   of three kernel rows {w0, w1} and {w1, w2} as int16, | bias | multiplier | offset | shift, which is missing where the
 *   rounding is one-sided. Weights and bias have the shift before the multiplication (tinyet_before_dsp) in them.
 * tinyet_depthwise_s8_chw_dsp: whatever there is. The weight stream, in words, for each output channel:
 *   pairs of neighbouring taps along u, row by row, the last of an odd number with a zero, two pairs a word:
 *   bytes {a0, b0, a1, b1}, | bias | multiplier | shift */
#ifndef TINYET_DEPTHWISE_DSP_H
#define TINYET_DEPTHWISE_DSP_H

#include "tinyet_depthwise_chw_dsp.h"

enum { TINYET_DSP_DEPTHWISE_WORDS = 5, TINYET_DSP_TAPS = 4 };

#if TINYET_DSP_ASM
/* The loops have their registers by name, since the compiler does not always find so many:
 *   r2 ... r6, r8   weights    r9   bias    r10, r11   sums of two neighbouring outputs    r12, lr   inputs
 * and on the stack multiplier, offset, shift, where the loop over an output row ends, where that over the rows ends, the bytes
 * from behind an output row to the next, and the bias. Where `two_rows` says so, two output rows are computed at a time: the
 * sums of the second are in a register more, which clang has not, and r9. A kernel row's weights are two pairs, {w0, w1} and {w1, w2}, shifted. */
/* clang-format off */
#define TINYET_DSP_ROW_WEIGHTS(w0, w1) \
  "sxtb16 " w1 ", " w0 ", ror #8\n" \
  "sxtb16 " w0 ", " w0 "\n" \
  "pkhtb " w1 ", " w1 ", " w0 ", asr #16\n" \
  ".if %c[one_sided]\n" \
  "lsl " w0 ", " w0 ", r10\n" \
  "lsl " w1 ", " w1 ", r10\n" \
  "bic " w0 ", " w0 ", r11\n" \
  "bic " w1 ", " w1 ", r11\n" \
  ".else\n" \
  "lsl " w0 ", " w0 ", #1\n" \
  "lsl " w1 ", " w1 ", #1\n" \
  "bic " w0 ", " w0 ", #0x10000\n" \
  "bic " w1 ", " w1 ", #0x10000\n" \
  ".endif\n"
/* Loads the channel that the words at `p` speak of: its stream, where its rows end, its first row. `p` holds
 * the row then; r11 masks what leaves the lower half. */
#define TINYET_DSP_CHANNEL \
  "ldrd r12, lr, [%[p]]\n" \
  "ldr %[p], [%[p], #8]\n" \
  "sub sp, sp, #32\n" \
  ".if %c[wide]\n" \
  "ldmia r12!, {r2, r3, r4, r5, r6, r8, r9}\n" \
  ".if %c[one_sided]\n" \
  "ldrd r10, r11, [r12]\n" \
  ".else\n" \
  "ldm r12, {r10, r11, r12}\n" \
  "str r12, [sp, #8]\n" \
  ".endif\n" \
  "strd r10, r11, [sp]\n" \
  ".else\n" \
  "ldm r12, {r2, r4, r6, r9, r12}\n" \
  "sbfx r10, r2, #8, #8\n" \
  ".if %c[one_sided]\n" \
  "mov r11, #1\n" \
  "lsl r11, r11, r10\n" \
  "movw r8, #%c[base] & 0xffff\n" \
  "movt r8, #(%c[base] >> 16) & 0xffff\n" \
  "add r8, r8, r11, lsr #2\n" \
  "sub r11, r11, #1\n" \
  "lsl r11, r11, #16\n" \
  ".else\n" \
  "movw r8, #%c[base] & 0xffff\n" \
  "movt r8, #(%c[base] >> 16) & 0xffff\n" \
  "sub r11, r10, #1\n" \
  "lsl r8, r8, r11\n" \
  "str r10, [sp, #8]\n" \
  ".endif\n" \
  "strd r12, r8, [sp]\n" \
  TINYET_DSP_ROW_WEIGHTS("r2", "r3") \
  TINYET_DSP_ROW_WEIGHTS("r4", "r5") \
  TINYET_DSP_ROW_WEIGHTS("r6", "r8") \
  ".endif\n" \
  ".if %c[several]\n" \
  "movw r10, #%c[next] & 0xffff\n" \
  "movt r10, #(%c[next] >> 16) & 0xffff\n" \
  "strd lr, r10, [sp, #16]\n" \
  ".endif\n" \
  ".if %c[looped]\n" \
  "addw r12, %[p], %[row_bytes]\n" \
  "str r12, [sp, #12]\n" \
  ".endif\n"
/* clang-format on */
/* Kernel row `at` for two outputs, strides 1 and 2: */
#define TINYET_DSP_ROW_1(at, w0, w1, a, b) \
  "ldrd r12, lr, [%[p]" at "\n"            \
  "smlad r10, r12, " w0 ", " a "\n"        \
  "smlatb r11, r12, " w0 ", " b "\n"       \
  "smlabt r10, lr, " w1 ", r10\n"          \
  "smlad r11, lr, " w1 ", r11\n"
#define TINYET_DSP_ROW_2(at, next, w0, w1, a, b) \
  "ldrd r12, lr, [%[p]" at "\n"                  \
  "smlad r10, r12, " w0 ", " a "\n"              \
  "ldr r12, [%[p]" next "\n"                     \
  "smlad r11, lr, " w0 ", " b "\n"               \
  "smlabt r10, lr, " w1 ", r10\n"                \
  "smlabt r11, r12, " w1 ", r11\n"
/* For the last one of an odd number of outputs. */
#define TINYET_DSP_ROW_LAST(at, w0, w1, a) \
  "ldrd r12, lr, [%[p]" at "\n"            \
  "smlad r10, r12, " w0 ", " a "\n"        \
  "smlabt r10, lr, " w1 ", r10\n"
/* clang-format off */
#define TINYET_DSP_TWO_OUTPUTS \
  ".if %c[stride] == 1\n" \
  TINYET_DSP_ROW_1("], #4", "r2", "r3", "r9", "r9") \
  TINYET_DSP_ROW_1(", #%c[row] * 4 - 4]", "r4", "r5", "r10", "r11") \
  TINYET_DSP_ROW_1(", #%c[row] * 8 - 4]", "r6", "r8", "r10", "r11") \
  ".else\n" \
  TINYET_DSP_ROW_2("], #8", "]", "r2", "r3", "r9", "r9") \
  TINYET_DSP_ROW_2(", #%c[row] * 4 - 8]", ", #%c[row] * 4]", "r4", "r5", "r10", "r11") \
  TINYET_DSP_ROW_2(", #%c[row] * 8 - 8]", ", #%c[row] * 8]", "r6", "r8", "r10", "r11") \
  ".endif\n"
#define TINYET_DSP_LAST_OUTPUT \
  TINYET_DSP_ROW_LAST("]", "r2", "r3", "r9") \
  TINYET_DSP_ROW_LAST(", #%c[row] * 4]", "r4", "r5", "r10") \
  TINYET_DSP_ROW_LAST(", #%c[row] * 8]", "r6", "r8", "r10")
#define TINYET_DSP_FACTORS \
  ".if %c[one_sided]\n" \
  "ldrd r12, lr, [sp]\n" \
  ".endif\n"
#define TINYET_DSP_FINISH(sum) \
  ".if %c[one_sided]\n" \
  "smmla " sum ", " sum ", r12, lr\n" \
  "ssat " sum ", #8, " sum ", asr %[exponent]\n" \
  ".else\n" \
  "ldrd r12, lr, [sp]\n" \
  "smmlar lr, " sum ", r12, lr\n" \
  "ldr r12, [sp, #8]\n" \
  "add " sum ", lr, " sum ", asr #31\n" \
  "asr " sum ", " sum ", r12\n" \
  "ssat " sum ", #8, " sum "\n" \
  ".endif\n" \
  ".if %c[low] > -128\n" \
  "cmp " sum ", %[low]\n" \
  "it lt\n" \
  "movlt " sum ", %[low]\n" \
  ".endif\n" \
  ".if %c[high] < 127\n" \
  "cmp " sum ", %[high]\n" \
  "it gt\n" \
  "movgt " sum ", %[high]\n" \
  ".endif\n"
#ifdef __clang__
#define TINYET_DSP_FOURTH "r9"
#define TINYET_DSP_FOURTH_OPERAND(x)
#else
#define TINYET_DSP_FOURTH "%[fourth]"
#define TINYET_DSP_FOURTH_OPERAND(x) , [fourth] "=&r"(x)
#endif
/* Input row `at` for two outputs of each of two rows: one row's pair of weights, and the other's. */
#define TINYET_DSP_ROW_OF_TWO(at, w0, w1, a, b, v0, v1, c, d) \
  TINYET_DSP_ROW_1(at, w0, w1, a, b) \
  "smlad " TINYET_DSP_FOURTH ", r12, " v0 ", " c "\n" \
  "smlatb r9, r12, " v0 ", " d "\n" \
  "smlabt " TINYET_DSP_FOURTH ", lr, " v1 ", " TINYET_DSP_FOURTH "\n" \
  "smlad r9, lr, " v1 ", r9\n"
#define TINYET_DSP_FOUR_OUTPUTS \
  "ldr r9, [sp, #24]\n" \
  TINYET_DSP_ROW_1("], #4", "r2", "r3", "r9", "r9") \
  TINYET_DSP_ROW_OF_TWO(", #%c[row] * 4 - 4]", "r4", "r5", "r10", "r11", "r2", "r3", "r9", "r9") \
  TINYET_DSP_ROW_OF_TWO(", #%c[row] * 8 - 4]", "r6", "r8", "r10", "r11", "r4", "r5", TINYET_DSP_FOURTH, "r9") \
  "ldrd r12, lr, [%[p], #%c[row] * 12 - 4]\n" \
  "smlad " TINYET_DSP_FOURTH ", r12, r6, " TINYET_DSP_FOURTH "\n" \
  "smlatb r9, r12, r6, r9\n" \
  "smlabt " TINYET_DSP_FOURTH ", lr, r8, " TINYET_DSP_FOURTH "\n" \
  "smlad r9, lr, r8, r9\n"
#define TINYET_DSP_LAST_OF_TWO(at, w0, w1, a, v0, v1, b) \
  TINYET_DSP_ROW_LAST(at, w0, w1, a) \
  "smlad r11, r12, " v0 ", " b "\n" \
  "smlabt r11, lr, " v1 ", r11\n"
#define TINYET_DSP_LAST_OUTPUTS \
  "ldr r9, [sp, #24]\n" \
  TINYET_DSP_ROW_LAST("]", "r2", "r3", "r9") \
  TINYET_DSP_LAST_OF_TWO(", #%c[row] * 4]", "r4", "r5", "r10", "r2", "r3", "r9") \
  TINYET_DSP_LAST_OF_TWO(", #%c[row] * 8]", "r6", "r8", "r10", "r4", "r5", "r11") \
  "ldrd r12, lr, [%[p], #%c[row] * 12]\n" \
  "smlad r11, r12, r6, r11\n" \
  "smlabt r11, lr, r8, r11\n"
#define TINYET_DSP_STORE_FOUR(OP) \
  ".if %c[two] < 256\n" \
  OP " " TINYET_DSP_FOURTH ", [%[out], %[below]]\n" \
  OP " r9, [%[out], #%c[below] + %c[step]]\n" \
  OP " r11, [%[out], %[step]]\n" \
  OP " r10, [%[out]], #%c[two]\n" \
  ".else\n" \
  OP " r10, [%[out], #tinyet_at_dsp]\n" \
  OP " r11, [%[out], #tinyet_at_dsp + %c[step]]\n" \
  OP " " TINYET_DSP_FOURTH ", [%[out], #tinyet_at_dsp + %c[below]]\n" \
  OP " r9, [%[out], #tinyet_at_dsp + %c[below] + %c[step]]\n" \
  ".set tinyet_at_dsp, tinyet_at_dsp + %c[two]\n" \
  ".endif\n"
/* The end of a turn, and of an output row or two. */
#define TINYET_DSP_NEXT_TURN \
  ".if tinyet_at_dsp\n" \
  "addw %[out], %[out], #tinyet_at_dsp\n" \
  ".endif\n" \
  ".if %c[looped]\n" \
  "ldr r12, [sp, #12]\n" \
  "cmp %[p], r12\n" \
  "bne 1b\n" \
  ".endif\n"
#define TINYET_DSP_NEXT_ROW \
  ".if %c[several]\n" \
  ".if %c[looped]\n" \
  "ldr r12, [sp, #12]\n" \
  "addw r12, r12, %[row_step]\n" \
  "str r12, [sp, #12]\n" \
  ".endif\n" \
  "ldrd r12, lr, [sp, #16]\n" \
  "addw %[p], %[p], %[to_next]\n" \
  "add %[out], lr\n" \
  "cmp %[p], r12\n" \
  "bne 2b\n" \
  ".endif\n"
/* Where a turn's outputs lie within the reach of one address, that is moved on behind them all. */
#define TINYET_DSP_STORE_TWO(OP) \
  ".if %c[two] < 256\n" \
  OP " r11, [%[out], %[step]]\n" \
  OP " r10, [%[out]], #%c[two]\n" \
  ".elseif %c[within]\n" \
  OP " r10, [%[out], #tinyet_at_dsp]\n" \
  OP " r11, [%[out], #tinyet_at_dsp + %c[step]]\n" \
  ".set tinyet_at_dsp, tinyet_at_dsp + %c[two]\n" \
  ".else\n" \
  OP " r11, [%[out], %[step]]\n" \
  OP " r10, [%[out]]\n" \
  "addw %[out], %[out], #%c[two]\n" \
  ".endif\n"
/* OP: the store of an output. */
#define TINYET_DSP_DEPTHWISE_ASM(OP) \
  __asm__ volatile( \
      TINYET_DSP_LINES \
      TINYET_DSP_CHANNEL \
      ".if %c[two_rows]\n" \
      "str r9, [sp, #24]\n" \
      "2:\n" \
      ".if %c[pairs]\n" \
      "1:\n" \
      ".set tinyet_at_dsp, 0\n" \
      ".rept %c[unroll]\n" \
      TINYET_DSP_FOUR_OUTPUTS \
      TINYET_DSP_FACTORS \
      TINYET_DSP_FINISH("r10") \
      TINYET_DSP_FINISH("r11") \
      TINYET_DSP_FINISH(TINYET_DSP_FOURTH) \
      TINYET_DSP_FINISH("r9") \
      TINYET_DSP_STORE_FOUR(OP) \
      ".endr\n" \
      TINYET_DSP_NEXT_TURN \
      ".endif\n" \
      ".if %c[odd]\n" \
      TINYET_DSP_LAST_OUTPUTS \
      TINYET_DSP_FACTORS \
      TINYET_DSP_FINISH("r10") \
      TINYET_DSP_FINISH("r11") \
      OP " r10, [%[out]]\n" \
      OP " r11, [%[out], %[below]]\n" \
      ".endif\n" \
      TINYET_DSP_NEXT_ROW \
      ".endif\n" \
      /* One row at a time, or the last of an odd number. */ \
      ".if %c[single]\n" \
      ".if %c[two_rows]\n" \
      "ldr r9, [sp, #24]\n" \
      ".endif\n" \
      "2:\n" \
      ".if %c[pairs]\n" \
      "1:\n" \
      ".set tinyet_at_dsp, 0\n" \
      ".rept %c[unroll]\n" \
      TINYET_DSP_TWO_OUTPUTS \
      TINYET_DSP_FACTORS \
      TINYET_DSP_FINISH("r10") \
      TINYET_DSP_FINISH("r11") \
      TINYET_DSP_STORE_TWO(OP) \
      ".endr\n" \
      TINYET_DSP_NEXT_TURN \
      ".endif\n" \
      ".if %c[odd]\n" \
      TINYET_DSP_LAST_OUTPUT \
      TINYET_DSP_FACTORS \
      TINYET_DSP_FINISH("r10") \
      OP " r10, [%[out]]\n" \
      ".endif\n" \
      ".if !%c[two_rows]\n" \
      TINYET_DSP_NEXT_ROW \
      ".endif\n" \
      ".endif\n" \
      "add sp, sp, #32\n" \
      : [p] "+r"(p), [out] "+r"(out) TINYET_DSP_FOURTH_OPERAND(fourth) \
      : [base] "i"(base), [wide] "i"(wide), [next] "i"(next), [row_bytes] "i"(4 * pairs * s.stride_u), \
        [row] "i"(kernel_row), [stride] "i"(s.stride_u), [step] "i"(s.out_step_u), [two] "i"(s.out_two_u), \
        [below] "i"(s.out_step_v), [pairs] "i"(pairs), [unroll] "i"(unroll), [looped] "i"(looped), \
        [within] "i"(unroll * s.out_two_u < 4096), [odd] "i"(s.out_u % 2), [two_rows] "i"(two_rows), \
        [single] "i"(!two_rows || s.out_v % 2 != 0), [several] "i"(s.tile > together), \
        [row_step] "i"(4 * together * s.stride_v * row), [to_next] "i"(to_next), \
        [one_sided] "i"(rounding.form == TINYET_DSP_ONE_SIDED), \
        [exponent] "i"(rounding.form == TINYET_DSP_ONE_SIDED ? rounding.exponent : 1), [low] "i"(rounding.low), \
        [high] "i"(rounding.high) \
      : "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "memory", "cc")
/* clang-format on */
#endif

/* `count` output rows of one channel: `rows` is the first one's first input row in the plane. wide: weights are int16, which is
 * not for PLAIN. */
TINYET_DSP_INLINE void tinyet_depthwise_rows_dsp(const uint32_t *rows, int8_t *out, const int32_t *w, int32_t count,
                                                 const int wide, const tinyet_depthwise_shape_dsp s,
                                                 const tinyet_rounding_dsp rounding) {
  const int32_t row = tinyet_row_words_dsp(s), kernel_row = s.dilation_v * row;
#if TINYET_DSP_ASM
  if (rounding.form != TINYET_DSP_PLAIN) {
    const int32_t pairs = s.out_u / 2, few = pairs == 3 ? 3 : 2 - pairs % 2;
    /* So that no tile ends with half a pair of rows, but for the last row of all. */
#ifdef __clang__
    const int32_t two_rows = 0;
#else
    const int32_t two_rows = s.stride_u == 1 && s.stride_v == 1 && s.dilation_v == 1 && s.out_v > 1 &&
                             (s.tile == s.out_v || (s.tile % 2 == 0 && s.out_v % 2 == 0)) &&
                             s.out_step_v + few * s.out_two_u < 4096 && 12 * row < 1024;
#endif
    const int32_t many = pairs % 4 == 0 ? 4 : (pairs % 3 == 0 ? 3 : (pairs % 2 == 0 ? 2 : 1));
    const int32_t unroll = two_rows ? few : many, looped = pairs > unroll, together = 1 + two_rows;
    /* From behind the pairs of a row to the next; an odd output moves neither. */
    const int32_t to_next = 4 * (together * s.stride_v * row - pairs * s.stride_u);
    const int32_t next = together * s.out_step_v - pairs * s.out_two_u;
    /* Without what depends on the shift. */
    const int32_t base = rounding.form == TINYET_DSP_ONE_SIDED
                             ? (1 << (rounding.exponent - 1)) + s.out_zero_point * (1 << rounding.exponent)
                             : 2 * s.out_zero_point + 1;
    const void *const of_channel[3] = {w, rows + count / together * together * s.stride_v * row, rows};
    const void *p = of_channel;
#ifndef __clang__
    int32_t fourth;
#endif
    if (s.pairs) {
      TINYET_DSP_DEPTHWISE_ASM("strh");
    } else {
      TINYET_DSP_DEPTHWISE_ASM("strb");
    }
    return;
  }
#endif
  int32_t weights[9], shift = 0, offset;
  if (wide) {
    for (int32_t i = 0; i < 9; i++) {
      weights[i] = tinyet_half_dsp((uint32_t)w[2 * (i / 3) + i % 3 / 2], i % 3 > 0);
    }
    w += 6;
    offset = w[2];
    if (rounding.form == TINYET_DSP_TWO_SIDED) {
      shift = w[3];
    }
  } else {
    shift = (int8_t)(uint8_t)((uint32_t)w[0] >> 8);
    offset = tinyet_offset_dsp(shift, s.out_zero_point, rounding);
    for (int32_t i = 0; i < 9; i++) {
      const int32_t place = i % 3 == 0 ? 0 : 8 + 8 * (i % 3);
      weights[i] = (int8_t)(uint8_t)((uint32_t)w[i / 3] >> place) * (1 << tinyet_before_dsp(shift, rounding));
    }
    w += 3;
  }
  for (int32_t v = 0; v < count; v++, rows += s.stride_v * row, out += s.out_step_v) {
    for (int32_t u = 0; u < s.out_u; u++) {
      uint32_t sum = (uint32_t)w[0];
      for (int32_t i = 0; i < 9; i++) {
        const int32_t at = u * s.stride_u + i % 3;
        sum += (uint32_t)(weights[i] * tinyet_half_dsp(rows[i / 3 * kernel_row + at / 2], at % 2));
      }
      int8_t *const at = out + u / 2 * s.out_two_u + u % 2 * s.out_step_u;
      const int8_t value = tinyet_round_shifted_dsp((int32_t)sum, w[1], offset, shift, rounding);
      if (s.pairs) {
        *(int16_t *)(void *)at = value;
      } else {
        *at = value;
      }
    }
  }
}

/* A group of channels, of the tile of output rows from `top` on. */
TINYET_DSP_INLINE void tinyet_depthwise_chw_3x3_tile_dsp(const int8_t *input, int8_t *output, uint32_t *planes,
                                                         const int32_t *weights, int32_t channel, int32_t top,
                                                         const int wide, const tinyet_depthwise_shape_dsp s,
                                                         const tinyet_rounding_dsp rounding) {
  const int32_t words = wide ? (rounding.form == TINYET_DSP_ONE_SIDED ? 9 : 10) : TINYET_DSP_DEPTHWISE_WORDS;
  const int32_t plane = tinyet_tile_rows_dsp(s) * tinyet_row_words_dsp(s);
  tinyet_fill_planes_dsp(planes, input + channel, top, s);
  for (int32_t k = 0; k < s.group; k++) {
    TINYET_DSP_UNKNOWN(k);
    tinyet_depthwise_rows_dsp(planes + k * plane, output + top * s.out_step_v + tinyet_out_byte_dsp(channel + k, s),
                              weights + (channel + k) * words, tinyet_rows_left_dsp(top, s), wide, s, rounding);
  }
}

/* scratch: 4 * group * tinyet_tile_rows_dsp * tinyet_row_words_dsp bytes. Needs as many channels as a group has; where the
 * last group has fewer, those before are computed twice. */
TINYET_DSP_INLINE void tinyet_depthwise_chw_3x3_dsp(const int8_t *input, int8_t *output, void *scratch,
                                                    const int32_t *weights, const int wide,
                                                    const tinyet_depthwise_shape_dsp s,
                                                    const tinyet_rounding_dsp rounding) {
  uint32_t *const planes = (uint32_t *)scratch;
  tinyet_blank_planes_dsp(planes, s);
  for (int32_t n = 0; n < s.batch; n++) {
    TINYET_DSP_OVER_TILES(
        s, tinyet_depthwise_chw_3x3_tile_dsp(input, output, planes, weights, channel, top, wide, s, rounding))
    input += s.in_u * s.in_v * tinyet_pixel_stride_dsp(s.in_step_u, s.in_step_v);
    output +=
        s.pairs ? s.out_v * s.out_step_v : s.out_u * s.out_v * tinyet_pixel_stride_dsp(s.out_step_u, s.out_step_v);
  }
}

TINYET_DSP_INLINE void tinyet_depthwise_s8_chw_3x3_dsp(const int8_t *input, int8_t *output, void *scratch,
                                                       const int32_t *weights, const tinyet_depthwise_shape_dsp s,
                                                       const tinyet_rounding_dsp rounding) {
  tinyet_depthwise_chw_3x3_dsp(input, output, scratch, weights, 0, s, rounding);
}

TINYET_DSP_INLINE void tinyet_depthwise_s8_w16_chw_3x3_dsp(const int8_t *input, int8_t *output, void *scratch,
                                                           const int32_t *weights, const tinyet_depthwise_shape_dsp s,
                                                           const tinyet_rounding_dsp rounding) {
  tinyet_depthwise_chw_3x3_dsp(input, output, scratch, weights, 1, s, rounding);
}

/* ---- any kernel ---- */

/* Pairs of taps of a kernel row. */
TINYET_DSP_INLINE int32_t tinyet_tap_pairs_dsp(const tinyet_depthwise_shape_dsp s) { return (s.kernel_u + 1) / 2; }

/* Words of weights of an output channel. */
TINYET_DSP_INLINE int32_t tinyet_tap_words_dsp(const tinyet_depthwise_shape_dsp s) {
  return (s.kernel_v * tinyet_tap_pairs_dsp(s) + 1) / 2;
}

#if TINYET_DSP_ASM
/* Volatile, so that the compiler leaves them in an order that needs few registers. */
TINYET_DSP_INLINE int32_t tinyet_ordered_smlad_dsp(uint32_t a, uint32_t b, int32_t c) {
  int32_t result;
  __asm__ volatile("smlad %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}
TINYET_DSP_INLINE uint32_t tinyet_ordered_load_dsp(const void *from, const int32_t offset) {
  uint32_t word;
  __asm__ volatile("ldr %0, %1" : "=r"(word) : "m"(*(const char(*)[4])((const char *)from + offset)));
  return word;
}
#else
TINYET_DSP_INLINE int32_t tinyet_ordered_smlad_dsp(uint32_t a, uint32_t b, int32_t c) {
  return tinyet_smlad_dsp(a, b, c);
}
TINYET_DSP_INLINE uint32_t tinyet_ordered_load_dsp(const void *from, const int32_t offset) {
  return tinyet_load_dsp((const int8_t *)from + offset);
}
#endif

/* `pairs` pairs of taps, at most TINYET_DSP_TAPS, for `count` sums whose first values are `step` apart. Each word of the
 * plane is loaded once where neighbours can share it. */
TINYET_DSP_INLINE void tinyet_tap_row_dsp(int32_t *sums, const int16_t *from, const uint32_t *taps, const int32_t pairs,
                                          const int32_t count, const int32_t step) {
  uint32_t weights[TINYET_DSP_TAPS];
  const int32_t shared = step < 3, last = shared ? (count - 1) * step + 2 * (pairs - 1) : pairs * count - 1;
#pragma GCC unroll 32
  for (int32_t at = 0; at <= last; at++) {
    /* Value `at` for all sums, or each pair of taps for one after another. */
    const int32_t value = shared ? at : at % count * step + at / count * 2;
    const int32_t first = shared ? 0 : at % count, end = shared ? count : first + 1;
    uint32_t word = 0;
    int32_t loaded = 0;
#pragma GCC unroll 4
    for (int32_t i = first; i < end; i++) {
      const int32_t t = (value - i * step) / 2;
      if (value >= i * step && (value - i * step) % 2 == 0 && t < pairs) {
        if (i == 0) {
          weights[t] = tinyet_ordered_load_dsp(taps, 4 * t);
        }
        if (!loaded) {
          word = tinyet_ordered_load_dsp(from, 2 * value);
          loaded = 1;
        }
        sums[i] = tinyet_ordered_smlad_dsp(word, weights[t], sums[i]);
      }
    }
  }
}

/* `count` outputs, `out_step` bytes apart: `from` is the first one's first value, `step` values apart. */
TINYET_DSP_INLINE void tinyet_depthwise_outputs_dsp(const int16_t *from, int8_t *out, const uint32_t *taps,
                                                    int32_t bias, int32_t multiplier, int32_t offset, int32_t shift,
                                                    const int32_t count, const int32_t step, const int32_t out_step,
                                                    const tinyet_depthwise_shape_dsp s,
                                                    const tinyet_rounding_dsp rounding) {
  const int32_t pairs = tinyet_tap_pairs_dsp(s), rest = pairs % TINYET_DSP_TAPS;
  int32_t sums[4];
#pragma GCC unroll 4
  for (int32_t i = 0; i < count; i++) {
    sums[i] = bias;
  }
  for (int32_t ky = 0; ky < s.kernel_v; ky++) {
    if (s.kernel_v > 1) {
      TINYET_DSP_UNKNOWN(ky);
    }
    for (int32_t t = 0; t < pairs - rest; t += TINYET_DSP_TAPS) {
      TINYET_DSP_UNKNOWN(t);
      tinyet_tap_row_dsp(sums, from + 2 * t, taps + t, TINYET_DSP_TAPS, count, step);
    }
    if (rest > 0) {
      tinyet_tap_row_dsp(sums, from + 2 * (pairs - rest), taps + pairs - rest, rest, count, step);
    }
    taps += pairs;
    from += 2 * s.dilation_v * tinyet_row_words_dsp(s);
  }
#pragma GCC unroll 4
  for (int32_t i = 0; i < count; i++) {
    out[i * out_step] = tinyet_round_dsp(sums[i], multiplier, offset, shift, rounding);
  }
}

/* One output row of one channel: `row` is its first input row in the plane. */
TINYET_DSP_INLINE void tinyet_depthwise_row_dsp(const int16_t *row, int8_t *out, const uint32_t *taps, int32_t bias,
                                                int32_t multiplier, int32_t offset, int32_t shift,
                                                const tinyet_depthwise_shape_dsp s,
                                                const tinyet_rounding_dsp rounding) {
  const int32_t runs = s.apart < s.out_u ? s.apart : s.out_u, block = s.out_u / runs < 4 ? s.out_u / runs : 4;
  for (int32_t run = 0; run < runs; run++) {
    const int16_t *const from = row + run * s.stride_u % s.dilation_u * s.part + run * s.stride_u / s.dilation_u;
    const int32_t count = (s.out_u - run + s.apart - 1) / s.apart;
    for (int32_t i = 0; i < count; i += block) {
      if (count % block != 0 && i > count - block) {
        i = count - block; /* some are computed twice */
      }
      tinyet_depthwise_outputs_dsp(from + i * s.between, out + (run + i * s.apart) * s.out_step_u, taps, bias,
                                   multiplier, offset, shift, block, s.between, s.apart * s.out_step_u, s, rounding);
    }
  }
}

/* A group of channels, of the tile of output rows from `top` on. */
TINYET_DSP_INLINE void tinyet_depthwise_chw_tile_dsp(const int8_t *input, int8_t *output, uint32_t *planes,
                                                     const int32_t *weights, int32_t channel, int32_t top,
                                                     const tinyet_depthwise_shape_dsp s,
                                                     const tinyet_rounding_dsp rounding) {
  const int32_t row = tinyet_row_words_dsp(s), plane = tinyet_tile_rows_dsp(s) * row, words = tinyet_tap_words_dsp(s);
  uint32_t *const taps = planes + s.group * plane;
  tinyet_fill_planes_dsp(planes, input + channel, top, s);
  for (int32_t k = 0; k < s.group * s.multiplier; k++) {
    TINYET_DSP_UNKNOWN(k);
    const int32_t *w = weights + (channel * s.multiplier + k) * (words + 3);
    for (int32_t i = 0; i < words; i++) {
      taps[2 * i] = tinyet_even_bytes_dsp((uint32_t)w[i]);
      taps[2 * i + 1] = tinyet_odd_bytes_dsp((uint32_t)w[i]);
    }
    const int32_t bias = w[words], multiplier = w[words + 1], shift = w[words + 2];
    const int32_t offset = tinyet_offset_dsp(shift, s.out_zero_point, rounding);
    const uint32_t *rows = planes + k / s.multiplier * plane;
    int8_t *out = output + top * s.out_step_v + channel * s.multiplier + k;
    for (int32_t v = tinyet_rows_left_dsp(top, s); v > 0; v--) {
      TINYET_DSP_UNKNOWN(v);
      tinyet_depthwise_row_dsp((const int16_t *)rows, out, taps, bias, multiplier, offset, shift, s, rounding);
      rows += s.stride_v * row;
      out += s.out_step_v;
    }
  }
}

/* scratch: 4 * (group * tinyet_tile_rows_dsp * tinyet_row_words_dsp + 2 * tinyet_tap_words_dsp) bytes. Channels as for 3x3. */
TINYET_DSP_INLINE void tinyet_depthwise_s8_chw_dsp(const int8_t *input, int8_t *output, void *scratch,
                                                   const int32_t *weights, const tinyet_depthwise_shape_dsp s,
                                                   const tinyet_rounding_dsp rounding) {
  uint32_t *const planes = (uint32_t *)scratch;
  tinyet_blank_planes_dsp(planes, s);
  for (int32_t n = 0; n < s.batch; n++) {
    TINYET_DSP_OVER_TILES(s, tinyet_depthwise_chw_tile_dsp(input, output, planes, weights, channel, top, s, rounding))
    input += s.in_u * s.in_v * tinyet_pixel_stride_dsp(s.in_step_u, s.in_step_v);
    output += s.out_u * s.out_v * tinyet_pixel_stride_dsp(s.out_step_u, s.out_step_v);
  }
}

#endif
