/* SPDX-License-Identifier: Apache-2.0 */
/* Bilinear resizing for cores with Helium, of int8 with weights in Q4 or Q10, of int16 in Q8 or Q10: see tinyet_mve.h.
 * First what lies between two rows is computed for all values of the input's rows, into scratch, then pixel by pixel
 * what lies between two columns. The parameters are those of tinyet_resize_dsp.h, of any number of channels. */
#ifndef TINYET_RESIZE_MVE_H
#define TINYET_RESIZE_MVE_H

#include "tinyet_mve.h"
#include "tinyet_resize_dsp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Weights in 1/16, eight values at a time. scratch: 2 bytes for each value of an input row. */
void tinyet_resize_bilinear_s8_q4_mve(const int8_t *input, int8_t *output, void *scratch,
                                      const tinyet_resize_bilinear_s8_dsp_params *params);
/* Weights in 1/1024, four at a time. scratch: 4 bytes for each value of an input row. */
void tinyet_resize_bilinear_s8_q10_mve(const int8_t *input, int8_t *output, void *scratch,
                                       const tinyet_resize_bilinear_s8_dsp_params *params);
/* Weights in 1/256, four at a time. scratch: 4 bytes for each value of an input row. */
void tinyet_resize_bilinear_s16_q8_mve(const int16_t *input, int16_t *output, void *scratch,
                                       const tinyet_resize_bilinear_s8_dsp_params *params);
/* Weights in 1/1024, four at a time, whose sums have more than 32 bits. scratch: 4 bytes for each value of an input row. */
void tinyet_resize_bilinear_s16_q10_mve(const int16_t *input, int16_t *output, void *scratch,
                                        const tinyet_resize_bilinear_s8_dsp_params *params);

/* Of a file that defines a kernel: its elements' type and letter; type, bits and letter of a value between rows; the
 * bytes of as many elements; U of a load; the sum of two weights and twice its bits; and the cast to the second
 * type, if it is one. */
#if TINYET_MVE_ASM
/* clang-format off */
#define TINYET_MVE_RESIZE_ROWS(ELEMENT, SHORT, TYPE, BITS, LETTER, STEP, ONE, NARROWED) \
  static void rows_between(const ELEMENT *above, const ELEMENT *below, TYPE *to, int32_t count, int32_t down) { \
    __asm__ volatile( \
        "dlstp." BITS " lr, %[count]\n" \
        "1:\n" \
        "vldr" SHORT ".s" BITS " q0, [%[above]], #" STEP "\n" \
        "vldr" SHORT ".s" BITS " q1, [%[below]], #" STEP "\n" \
        "vmul.i" BITS " q0, q0, %[up]\n" \
        "vmla.s" BITS " q0, q1, %[down]\n" \
        "vstr" LETTER "." BITS " q0, [%[to]], #16\n" \
        "letp lr, 1b\n" \
        : [above] "+l"(above), [below] "+l"(below), [to] "+r"(to) \
        : [count] "r"(count), [up] "r"(ONE - down), [down] "r"(down) \
        : "lr", "d0", "d1", "d2", "d3", "memory"); \
  }
#define TINYET_MVE_RESIZE_PARTS(ELEMENT, SHORT, TYPE, BITS, LETTER, STEP, UNSIGNED, ONE, TWICE, NARROWED) \
  TINYET_MVE_RESIZE_ROWS(ELEMENT, SHORT, TYPE, BITS, LETTER, STEP, ONE, NARROWED) \
  /* Ties away from zero. */ \
  TINYET_DSP_INLINE void columns_between(const TYPE *left, const TYPE *right, ELEMENT *to, int32_t count, int32_t weight) { \
    __asm__ volatile( \
        "dlstp." BITS " lr, %[count]\n" \
        "1:\n" \
        "vldr" LETTER "." UNSIGNED BITS " q0, [%[left]], #16\n" \
        "vldr" LETTER "." UNSIGNED BITS " q1, [%[right]], #16\n" \
        "vmul.i" BITS " q0, q0, %[rest]\n" \
        "vmla.s" BITS " q0, q1, %[weight]\n" \
        "vshr.s" BITS " q1, q0, #" BITS "-1\n" \
        "vqadd.s" BITS " q0, q0, q1\n" \
        "vrshr.s" BITS " q0, q0, #" TWICE "\n" \
        "vstr" SHORT "." BITS " q0, [%[to]], #" STEP "\n" \
        "letp lr, 1b\n" \
        : [left] "+r"(left), [right] "+r"(right), [to] "+l"(to) \
        : [count] "r"(count), [rest] "r"(ONE - weight), [weight] "r"(weight) \
        : "lr", "d0", "d1", "d2", "d3", "memory"); \
  }
/* clang-format on */
#else
#define TINYET_MVE_RESIZE_ROWS(ELEMENT, SHORT, TYPE, BITS, LETTER, STEP, ONE, NARROWED)                                  \
  static void rows_between(const ELEMENT *above, const ELEMENT *below, TYPE *to, int32_t count, int32_t down) {          \
    for (int32_t i = 0; i < count; i++) {                                                                                \
      to[i] = NARROWED(above[i] * (ONE - down) + below[i] * down);                                                       \
    }                                                                                                                    \
  }
#define TINYET_MVE_RESIZE_PARTS(ELEMENT, SHORT, TYPE, BITS, LETTER, STEP, UNSIGNED, ONE, TWICE, NARROWED)                \
  TINYET_MVE_RESIZE_ROWS(ELEMENT, SHORT, TYPE, BITS, LETTER, STEP, ONE, NARROWED)                                        \
  static void columns_between(const TYPE *left, const TYPE *right, ELEMENT *to, int32_t count, int32_t weight) {         \
    for (int32_t i = 0; i < count; i++) {                                                                                \
      const int64_t sum = (int64_t)left[i] * (ONE - weight) + (int64_t)right[i] * weight, half = ONE * ONE / 2;          \
      to[i] = (ELEMENT)(sum < 0 ? -((half - sum) / (ONE * ONE)) : (sum + half) / (ONE * ONE));                           \
    }                                                                                                                    \
  }
#endif

#define TINYET_MVE_RESIZE(NAME, ELEMENT, TYPE)                                                                           \
  void NAME(const ELEMENT *input, ELEMENT *output, void *scratch, const tinyet_resize_bilinear_s8_dsp_params *p) {       \
    const int32_t channels = p->channels, row = p->in_w * channels;                                                      \
    TYPE *const between = (TYPE *)scratch;                                                                               \
    for (int32_t n = 0; n < p->batch; n++) {                                                                             \
      for (int32_t y = 0; y < p->out_h; y++) {                                                                           \
        const int32_t *run = p->runs;                                                                                    \
        const int16_t *weight = p->column_weights;                                                                       \
        rows_between(input + p->rows[2 * y], input + p->rows[2 * y + 1], between, row, p->row_weights[y]);               \
        for (int32_t i = p->run_count; i > 0; i--, run += 3) {                                                           \
          const TYPE *const left = between + run[0] * channels, *const right = between + run[1] * channels;              \
          for (const int16_t *const end = weight + run[2]; weight != end; weight++, output += channels) {                \
            columns_between(left, right, output, channels, *weight);                                                     \
          }                                                                                                              \
        }                                                                                                                \
      }                                                                                                                  \
      input += p->in_h * row;                                                                                            \
    }                                                                                                                    \
  }

#ifdef __cplusplus
}
#endif

#endif
