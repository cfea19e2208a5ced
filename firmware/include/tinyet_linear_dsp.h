/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised int8 fully connected layer for cores with DSP instructions: see tinyet_dsp.h.
 *
 * Four outputs at a time, for one row of inputs, which is widened into scratch once. Each weight is used once, so that reading
 * and widening the weights is most of the work.
 *
 * The weight stream, in words, for each four outputs a, b, c, d (zeros where there are fewer):
 *   bias a … d | for each pair of inputs: bytes {a0, b0, a1, b1}, bytes {c0, d0, c1, d1} |
 *   multiplier a … d | offset a … d | shift a … d */
#ifndef TINYET_LINEAR_DSP_H
#define TINYET_LINEAR_DSP_H

#include "tinyet_conv2d_dsp.h"

/* Adds the products of `pairs` pairs of inputs to four sums, and moves *weights behind the weights. `unroll` divides it. */
TINYET_DSP_INLINE void tinyet_dot_row_dsp(int32_t sums[4], const int32_t **weights, const uint32_t *inputs,
                                          const int32_t pairs, const int32_t unroll) {
  const int32_t *w = *weights;
#if TINYET_DSP_ASM
  const uint32_t *const end = inputs + pairs;
  int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
  uint32_t x, y, z, t;
  do {
    __asm__(TINYET_DSP_LINES ".rept %c[unroll]\n"
            "ldrd %[y], %[z], [%[w]], #8\n"
            "ldr %[x], [%[in]], #4\n"
            "sxtb16 %[t], %[y]\n"
            "sxtb16 %[y], %[y], ror #8\n"
            "smlad %[a], %[t], %[x], %[a]\n"
            "sxtb16 %[t], %[z]\n"
            "smlad %[b], %[y], %[x], %[b]\n"
            "sxtb16 %[z], %[z], ror #8\n"
            "smlad %[c], %[t], %[x], %[c]\n"
            "smlad %[d], %[z], %[x], %[d]\n"
            ".endr\n"
            : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [w] "+r"(w), [in] "+r"(inputs), [x] "=&r"(x),
              [y] "=&r"(y), [z] "=&r"(z), [t] "=&r"(t)
            : [unroll] "i"(unroll)
            : "memory");
  } while (inputs != end);
  sums[0] = a;
  sums[1] = b;
  sums[2] = c;
  sums[3] = d;
#else
  (void)unroll;
  for (int32_t i = 0; i < pairs; i++) {
    for (int32_t k = 0; k < 4; k += 2) {
      const uint32_t word = (uint32_t)*w++;
      sums[k] = tinyet_smlad_dsp(tinyet_even_bytes_dsp(word), inputs[i], sums[k]);
      sums[k + 1] = tinyet_smlad_dsp(tinyet_odd_bytes_dsp(word), inputs[i], sums[k + 1]);
    }
  }
#endif
  *weights = w;
}

/* rows of `depth` inputs to rows of `count` outputs. scratch: 4 * tinyet_int16x2_count_dsp(depth) bytes. */
TINYET_DSP_INLINE void tinyet_linear_s8_1x4_dsp(const int8_t *input, int8_t *output, void *scratch, const int32_t *weights,
                                                const int32_t rows, const int32_t depth, const int32_t count,
                                                const int32_t unroll, const tinyet_rounding_dsp rounding) {
  const int32_t pairs = tinyet_int16x2_count_dsp(depth);
  uint32_t *const wide = (uint32_t *)scratch;
  for (int32_t row = 0; row < rows; row++, input += depth) {
    const int32_t *w = weights;
    tinyet_widen_dsp(wide, input, depth, 1);
    for (int32_t n = 0; n < count; n += 4) {
      int32_t sums[4] = {w[0], w[1], w[2], w[3]};
      w += 4;
      tinyet_dot_row_dsp(sums, &w, wide, pairs, unroll);
      const int32_t left = count - n < 4 ? count - n : 4;
#pragma GCC unroll 4
      for (int32_t k = 0; k < 4; k++) {
        if (k < left) {
          *output++ = tinyet_round_dsp(sums[k], w[k], w[4 + k], w[8 + k], rounding);
        }
      }
      w += 12;
    }
  }
}

#endif
