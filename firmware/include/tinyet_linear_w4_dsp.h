/* SPDX-License-Identifier: Apache-2.0 */
/* Fully connected layers with int4 weights for cores with DSP instructions (see tinyet_dsp.h), one row at a time.
 *
 * For each input there is a lane of 16 bits with the weights of four channels, 4096 * d + 256 * c + 16 * b + a, of which a, b
 * and c have 8 added: digits of 0 … 15. Multiplied as it is it adds up to 4096 * D + 256 * C + 16 * B + A; by its lower byte to
 * 16 * B + A; without its second and fourth digit to 256 * C + A, and by the lower byte of that to A. Both lower bytes
 * come by Winograd's inner product (tinyet_tile_dsp.h), where UXTAB16 takes the byte and adds an input at once. So 32
 * products are 27 instructions. Where sums of d would leave 20 bits, the inputs are divided into `parts`, whose sums are
 * added.
 *
 * The stream, in words: a head (tinyet_linear_w4_head_dsp), then for each four outputs (zeros where there are fewer), for each
 * part (biases are zero but for the first one):
 *   bias a - constant | 16 * bias b + bias a - constant | 256 * bias c + bias a | 4096 * bias d + that + 16 * bias b |
 *   for each eight inputs 0 … 7: lanes (0, 2), (1, 3), (4, 6), (5, 7)
 * and behind the parts: multiplier a … d | offset a … d | shift a … d, which stands before them where the form is ONE_SIDED. */
#ifndef TINYET_LINEAR_W4_DSP_H
#define TINYET_LINEAR_W4_DSP_H

#include "tinyet_linear_steps_dsp.h"

typedef struct {
  int32_t eights; /* inputs of a part, rounded up to a multiple of eight, by eight */
  int32_t depth;  /* inputs */
  int32_t count;  /* outputs, rounded down to a multiple of four */
} tinyet_linear_w4_head_dsp;

/* What the digits' 8 and Winograd's products of inputs add to the sums of a part, in the order of the stream. */
typedef struct {
  int32_t sums[4];
} tinyet_surplus_dsp;

/* The outputs of p->results, whose rounding is at p->weights, to p->output. */
TINYET_DSP_INLINE void tinyet_digits_round_dsp(tinyet_row_sums_dsp *p, const tinyet_rounding_dsp rounding) {
  const int32_t *const w = p->weights;
  const int32_t first = rounding.form == TINYET_DSP_ONE_SIDED ? 4 : 0; /* where the multipliers are */
  int8_t *out = (int8_t *)p->output;
  for (int32_t k = 0; k < 4; k++) {
    *out++ = tinyet_round_dsp(p->results[k], w[first + k], w[first + 4 + k], w[(first + 8) % 12 + k], rounding);
  }
  p->output = out;
  p->weights = w + 12;
}

/* Sums A … D over the inputs of a part, from the weights at p->weights on, which it leaves behind: where `finish` says so, as
 * outputs, to p->output, which it leaves behind, too; else to p->results. */
TINYET_DSP_INLINE void tinyet_digit_sums_dsp(tinyet_row_sums_dsp *p, const int32_t finish,
                                             const tinyet_rounding_dsp rounding) {
#if TINYET_DSP_ASM
/* clang-format off */
#define TINYET_DSP_DIGITS(x0, x1) \
  "ldrd r10, r11, [r1], #8\n" \
  "smlad r5, r10, " x0 ", r5\n" \
  "smlad r5, r11, " x1 ", r5\n" \
  "and r12, r10, #0x0f0f0f0f\n" \
  "and lr, r11, #0x0f0f0f0f\n" \
  "uxtab16 r10, " x1 ", r10\n" \
  "uxtab16 r11, " x0 ", r11\n" \
  "smlad r3, r10, r11, r3\n" \
  "smlad r4, r12, " x0 ", r4\n" \
  "smlad r4, lr, " x1 ", r4\n" \
  "uxtab16 r12, " x1 ", r12\n" \
  "uxtab16 lr, " x0 ", lr\n" \
  "smlad r2, r12, lr, r2\n"
#define TINYET_DSP_FIRST_ROUNDING(sum, multiplier, offset) \
  "lsl " sum ", " sum ", #1\n" \
  "smmlar " multiplier ", " sum ", " multiplier ", " offset "\n" \
  "add " multiplier ", " multiplier ", " sum ", asr #31\n"
#define TINYET_DSP_STORE_DIGIT(value, shift) \
  "ssat " value ", #8, " value shift "\n" \
  ".if %c[low] > -128\n" \
  "cmp " value ", %[low]\n" \
  "it lt\n" \
  "movlt " value ", %[low]\n" \
  ".endif\n" \
  ".if %c[high] < 127\n" \
  "cmp " value ", %[high]\n" \
  "it gt\n" \
  "movgt " value ", %[high]\n" \
  ".endif\n" \
  "strb " value ", [r0], #1\n"
  TINYET_DSP_SUM_STEPS(p, "r2, r3, r4, r5",
                       "ldr.w lr, [r12, #20]\n"
                       "ldmia.w lr, {r6, r7, r8, r10}\n"
                       "subs r2, r2, r6\n"
                       "subs r3, r3, r7\n"
                       "sub r4, r4, r8\n"
                       "sub r5, r5, r10\n",
                       "ldmia.w r0!, {r6, r7, r8, r9}\n"
                       TINYET_DSP_DIGITS("r6", "r7")
                       TINYET_DSP_DIGITS("r8", "r9"),
                       "sub r5, r5, r3\n" /* 4096 * D + 256 * C */
                       "subs r4, r4, r2\n"
                       "sub r5, r5, r4\n"
                       "subs r3, r3, r2\n"
                       "asr r3, r3, #4\n"
                       "asr r4, r4, #8\n"
                       "asr r5, r5, #12\n"
                       ".if !%c[finish]\n"
                       "add r0, r12, #4\n"
                       "stmia r0!, {r2, r3, r4, r5}\n"
                       ".elseif %c[one_sided]\n"
                       "ldmia.w r1!, {r6, r7, r8, r9}\n"
                       "lsls r2, r2, r6\n"
                       "lsls r3, r3, r7\n"
                       "lsl r4, r4, r8\n"
                       "lsl r5, r5, r9\n"
                       "ldmia.w r1!, {r6, r7, r8, r9}\n"
                       "ldmia.w r1!, {r0, r10, r11, lr}\n"
                       "smmla r2, r2, r6, r0\n"
                       "smmla r3, r3, r7, r10\n"
                       "smmla r4, r4, r8, r11\n"
                       "smmla r5, r5, r9, lr\n"
                       "ldr r0, [r12]\n"
                       TINYET_DSP_STORE_DIGIT("r2", ", asr %[exponent]")
                       TINYET_DSP_STORE_DIGIT("r3", ", asr %[exponent]")
                       TINYET_DSP_STORE_DIGIT("r4", ", asr %[exponent]")
                       TINYET_DSP_STORE_DIGIT("r5", ", asr %[exponent]")
                       "str r0, [r12]\n"
                       ".else\n"
                       "ldmia.w r1!, {r6, r7, r8, r9}\n"
                       "ldmia.w r1!, {r0, r10, r11, lr}\n"
                       TINYET_DSP_FIRST_ROUNDING("r2", "r6", "r0")
                       TINYET_DSP_FIRST_ROUNDING("r3", "r7", "r10")
                       TINYET_DSP_FIRST_ROUNDING("r4", "r8", "r11")
                       TINYET_DSP_FIRST_ROUNDING("r5", "r9", "lr")
                       "ldmia.w r1!, {r0, r10, r11, lr}\n"
                       "asrs r6, r6, r0\n"
                       "asr r7, r7, r10\n"
                       "asr r8, r8, r11\n"
                       "asr r9, r9, lr\n"
                       "ldr r0, [r12]\n"
                       TINYET_DSP_STORE_DIGIT("r6", "")
                       TINYET_DSP_STORE_DIGIT("r7", "")
                       TINYET_DSP_STORE_DIGIT("r8", "")
                       TINYET_DSP_STORE_DIGIT("r9", "")
                       "str r0, [r12]\n"
                       ".endif\n",
                       , [finish] "i"(finish), [one_sided] "i"(rounding.form == TINYET_DSP_ONE_SIDED),
                       [exponent] "i"(rounding.form == TINYET_DSP_ONE_SIDED ? rounding.exponent : 1),
                       [low] "i"(rounding.low), [high] "i"(rounding.high));
#undef TINYET_DSP_STORE_DIGIT
#undef TINYET_DSP_FIRST_ROUNDING
#undef TINYET_DSP_DIGITS
/* clang-format on */
#else
  uint32_t sums[4];
  for (int32_t k = 0; k < 4; k++) {
    sums[k] = (uint32_t)*p->weights++ - (uint32_t)p->surplus[k];
  }
  for (const uint32_t *x = p->inputs; x != p->end; x += 2) {
    const uint32_t u = (uint32_t)*p->weights++, v = (uint32_t)*p->weights++;
    const uint32_t bytes = 0x00ff00ffu, digits = 0x000f000fu;
    sums[0] = (uint32_t)tinyet_smlad_dsp(tinyet_add_int16x2_dsp(x[1], u & digits),
                                         tinyet_add_int16x2_dsp(x[0], v & digits), (int32_t)sums[0]);
    sums[1] = (uint32_t)tinyet_smlad_dsp(tinyet_add_int16x2_dsp(x[1], u & bytes),
                                         tinyet_add_int16x2_dsp(x[0], v & bytes), (int32_t)sums[1]);
    for (int32_t i = 0; i < 2; i++) {
      const uint32_t lanes = i == 0 ? u : v;
      sums[2] = (uint32_t)tinyet_smlad_dsp(lanes & 0x0f0f0f0fu, x[i], (int32_t)sums[2]);
      sums[3] = (uint32_t)tinyet_smlad_dsp(lanes, x[i], (int32_t)sums[3]);
    }
  }
  p->results[0] = (int32_t)sums[0];
  p->results[1] = (int32_t)(sums[1] - sums[0]) >> 4;
  p->results[2] = (int32_t)(sums[2] - sums[0]) >> 8;
  p->results[3] = (int32_t)(sums[3] - sums[1] - (sums[2] - sums[0])) >> 12;
  if (finish) {
    tinyet_digits_round_dsp(p, rounding);
  }
#endif
}

/* Four inputs as pairs (0, 2) and (1, 3), and the products of both and eight times the sum of all. */
TINYET_DSP_INLINE uint32_t *tinyet_put_int8x4_dsp(uint32_t *to, uint32_t word, int32_t *products, int32_t *sum) {
  to[0] = tinyet_even_bytes_dsp(word);
  to[1] = tinyet_odd_bytes_dsp(word);
  *products = tinyet_smlad_dsp(to[0], to[1], *products);
  *sum = tinyet_smlad_dsp(tinyet_add_int16x2_dsp(to[0], to[1]), 0x00080008u, *sum);
  return to + 2;
}

/* `depth` inputs as pairs (0, 2), (1, 3), (4, 6), (5, 7), with zeros behind, up to `eights` times eight; what they add. */
TINYET_DSP_INLINE tinyet_surplus_dsp tinyet_put_inputs_dsp(uint32_t *to, const int8_t *from, int32_t depth,
                                                           int32_t eights) {
  const uint32_t *const end = to + 4 * eights;
  int32_t products = 0, sum = 0;
  for (int32_t left = depth / 8; left > 0; left--, from += 8) {
    TINYET_DSP_UNKNOWN(left);
    to = tinyet_put_int8x4_dsp(to, tinyet_load_dsp(from), &products, &sum);
    to = tinyet_put_int8x4_dsp(to, tinyet_load_dsp(from + 4), &products, &sum);
  }
  if ((depth & 4) != 0) {
    to = tinyet_put_int8x4_dsp(to, tinyet_load_dsp(from), &products, &sum);
    from += 4;
  }
  if ((depth & 3) != 0) {
    uint32_t word = 0;
    for (int32_t i = depth & 3; i > 0; i--) {
      TINYET_DSP_UNKNOWN(i);
      word = word << 8 | (uint8_t)from[i - 1];
    }
    to = tinyet_put_int8x4_dsp(to, word, &products, &sum);
  }
  for (; to != end; to++) {
    TINYET_DSP_UNKNOWN(to); /* or it becomes a call of memset */
    *to = 0;
  }
  const tinyet_surplus_dsp surplus = {{products + sum, products + 17 * sum, 257 * sum, 273 * sum}};
  return surplus;
}

/* Rows of inputs to rows of outputs. scratch: for each part 16 bytes for each eight inputs and 16 more.
 * rest: outputs % 4; all but pointers are literals. */
TINYET_DSP_INLINE void tinyet_linear_s8_w4_1x4_dsp(const int8_t *input, int8_t *output, void *scratch,
                                                   const int32_t *weights, const int32_t parts, const int32_t rows,
                                                   const int32_t rest, const tinyet_rounding_dsp rounding) {
  const int32_t finish = parts == 1 && rounding.form != TINYET_DSP_PLAIN;
  tinyet_linear_w4_head_dsp head;
  memcpy(&head, weights, sizeof head);
  uint32_t *const inputs = (uint32_t *)scratch;
  const int32_t words = 4 * head.eights;
  tinyet_surplus_dsp *const surplus = (tinyet_surplus_dsp *)(void *)(inputs + parts * words);
  tinyet_row_sums_dsp p;
  p.skipped = tinyet_skipped_dsp(head.eights) * 108;
  for (int32_t row = 0; row < rows; row++) {
    for (int32_t part = 0; part < parts; part++) {
      const int32_t first = 8 * part * head.eights, left = head.depth - first;
      surplus[part] = tinyet_put_inputs_dsp(inputs + part * words, input + first,
                                            left < 8 * head.eights ? left : 8 * head.eights, head.eights);
    }
    input += head.depth;
    p.inputs = inputs;
    p.end = inputs + words;
    p.surplus = surplus->sums;
    p.weights = weights + sizeof head / sizeof *weights;
    int8_t last[4];
    p.output = output;
    output += head.count;
    const int8_t *end = output;
    for (int32_t left = rest != 0;; left--) {
      while (p.output != end) {
        if (finish) {
          tinyet_digit_sums_dsp(&p, 1, rounding);
          continue;
        }
        int32_t sums[4] = {0, 0, 0, 0};
        for (int32_t part = 0; part < parts; part++) {
          if (parts > 1) {
            TINYET_DSP_UNKNOWN(part);
            p.inputs = inputs + part * words;
            p.end = p.inputs + words;
            p.surplus = surplus[part].sums;
          }
          tinyet_digit_sums_dsp(&p, 0, rounding);
          for (int32_t k = 0; k < 4; k++) {
            sums[k] += p.results[k];
          }
        }
        memcpy(p.results, sums, sizeof sums);
        tinyet_digits_round_dsp(&p, rounding);
      }
      if (rest == 0 || left == 0) {
        break;
      }
      p.output = last; /* the last four outputs, of which fewer are there */
      end = last + 4;
    }
    for (int32_t k = 0; k < rest; k++) {
      TINYET_DSP_UNKNOWN(k);
      *output++ = last[k];
    }
  }
}

#endif
