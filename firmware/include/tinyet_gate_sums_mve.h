/* SPDX-License-Identifier: Apache-2.0 */
/* The sums that the gates of recurrent layers are made of, for cores with Helium: sixteen products at a time. Elsewhere the same
 * is plain C. */
#ifndef TINYET_GATE_SUMS_MVE_H
#define TINYET_GATE_SUMS_MVE_H

#include <string.h>

#include "tinyet_gates.h"

#ifdef __cplusplus
extern "C" {
#endif

#if TINYET_GATE_MVE
/* Four rows of `sixteens` times sixteen inputs and `rest` more, behind which `wide` has zeros. */
static inline int32x4_t tinyet_four_rows_mve(const int8_t *wide, const int8_t *w, const int32_t *bias, int32_t sixteens,
                                             int32_t rest) {
  int32_t a = bias[0], b = bias[1], c = bias[2], d = bias[3];
  __asm__("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d)); /* GCC would load them as a vector, and take it apart */
  for (; sixteens > 0; sixteens--) {
    const int8x16_t values = vldrbq_s8(wide);
    a = vmladavaq_s8(a, values, vldrbq_s8(w));
    b = vmladavaq_s8(b, values, vldrbq_s8(w + 16));
    c = vmladavaq_s8(c, values, vldrbq_s8(w + 32));
    d = vmladavaq_s8(d, values, vldrbq_s8(w + 48));
    wide += 16, w += 64;
  }
  if (rest != 0) {
    const int8x16_t values = vldrbq_s8(wide);
    a = vmladavaq_s8(a, values, vldrbq_s8(w));
    b = vmladavaq_s8(b, values, vldrbq_s8(w + rest));
    c = vmladavaq_s8(c, values, vldrbq_s8(w + 2 * rest));
    d = vmladavaq_s8(d, values, vldrbq_s8(w + 2 * rest + rest));
  }
  return (int32x4_t){a, b, c, d};
}
#endif

/* apart: what is added is saturated before, too. */
static inline __attribute__((always_inline)) void tinyet_sums_mve(const int8_t *input, const tinyet_gate_part_s8 *part,
                                                                  int32_t gates, int32_t units, int16_t *sums,
                                                                  int8_t *wide, const int32_t apart) {
  const int32_t depth = part->depth, sixteens = depth / 16, rest = depth & 15;
  const int8_t *w = part->weights;
  const int32_t *bias = part->bias;
#if TINYET_GATE_MVE
  for (int32_t k = 0; k < depth; k += 16) {
    vstrbq_s8(wide + k, vldrbq_z_s8(input + k, vctp8q((uint32_t)(depth - k))));
  }
#else
  (void)wide;
#endif
  for (int32_t gate = 0; gate < gates; gate++) {
    const int32_t multiplier = part->multiplier[gate], form = part->form[gate];
#if TINYET_GATE_MVE
    const int32_t shift = form < 0 ? form + 31 : -1 - form;
    const int16_t *const end = sums + units;
    for (; sums != end; w += 4 * depth, bias += 4, sums += 4) {
      int32x4_t rows = tinyet_four_rows_mve(wide, w, bias, sixteens, rest);
      if (__builtin_expect(shift < 0, 1)) {
        rows = tinyet_rounded_mve(vqrdmulhq_n_s32(rows, multiplier), -shift);
      } else {
        rows = vqrdmulhq_n_s32(vshlq_r_s32(rows, shift), multiplier);
      }
      if (apart) {
        rows = vmovlbq_s16(vqmovnbq_s32(vdupq_n_s16(0), rows));
      }
      rows = vaddq_s32(rows, vldrhq_s32(sums));
      vstrhq_s32(sums, vreinterpretq_s32_s16(vqmovnbq_s32(vdupq_n_s16(0), rows)));
    }
#else
    for (int32_t n = 0; n < units; n++) {
      const int8_t *const four = w + (n & ~3) * depth;
      int32_t sum = *bias++;
      for (int32_t k = 0; k < depth; k++) {
        const int32_t wide_row = k < 16 * sixteens ? 16 : rest;
        sum += input[k] * four[(k & ~15) * 4 + (n & 3) * wide_row + (k & 15)];
      }
      sum = tinyet_requantize_form(sum, multiplier, form, 0);
      sum = *sums + (apart ? tinyet_gate_saturate(sum) : sum);
      *sums++ = (int16_t)tinyet_gate_saturate(sum);
    }
    w += units * depth;
#endif
  }
}

/* tinyet_gate_sums of weights that lie, of each four rows, in sixteens: sixteen inputs of each row in turn, then what remains of
 * each; and 16 bytes behind all. wide: for as many int8 as the input has values, rounded up to sixteens. */
static __attribute__((noinline, unused)) void tinyet_gate_sums_mve(const int8_t *input, const tinyet_gate_part_s8 *part,
                                                                   int32_t gates, int32_t units, int16_t *sums,
                                                                   int8_t *wide) {
  tinyet_sums_mve(input, part, gates, units, sums, wide, 0);
}

/* The same as tinyet_lut_sums_s8. */
static __attribute__((noinline, unused)) void tinyet_lut_sums_mve(const int8_t *input,
                                                                  const tinyet_gate_part_s8 *part, int32_t gates,
                                                                  int32_t units, int16_t *sums, int8_t *wide) {
  tinyet_sums_mve(input, part, gates, units, sums, wide, 1);
}

#ifdef __cplusplus
}
#endif

#endif
