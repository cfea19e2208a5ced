/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_clamp_rows_dsp.h"
#include "tinyet_int8x4_dsp.h"

/* What a row needs, in registers. */
typedef struct {
  uint32_t less_a; /* a pair of a's negative zero point */
  int32_t multiplier, shift, offset;
} factor;

TINYET_DSP_INLINE factor factor_of(const tinyet_mul_s8_dsp_params *params) {
  const factor f = {tinyet_dup_int16x2_dsp(-params->a_zero_point), params->multiplier, params->shift, params->offset};
  return f;
}

/* Of twice a product, 128 more than the output: both roundings, the second one away from zero. */
TINYET_DSP_INLINE int32_t rounded(int32_t doubled, const factor f) {
  return (tinyet_smmlar_dsp(doubled, f.multiplier, f.offset) + (doubled >> 31)) >> f.shift;
}

/* Two results as a pair. */
TINYET_DSP_INLINE uint32_t two(uint32_t a, uint32_t doubled_b, const factor f) {
  const int32_t first = rounded(tinyet_smulbb_dsp(a, doubled_b), f);
  const int32_t second = rounded(tinyet_smultt_dsp(a, doubled_b), f);
  return tinyet_saturate_int16x2_dsp(tinyet_low_int16x2_dsp((uint32_t)first, (uint32_t)second));
}

TINYET_DSP_INLINE uint32_t four(uint32_t a, uint32_t even_b, uint32_t odd_b, const factor f) {
  const uint32_t even = two(tinyet_add_even_bytes_dsp(f.less_a, a), even_b, f);
  return tinyet_join_bytes_dsp(even, two(tinyet_add_odd_bytes_dsp(f.less_a, a), odd_b, f));
}

/* Operands less their zero points. */
TINYET_DSP_INLINE int8_t one(int32_t a, int32_t b, const factor f) {
  return (int8_t)(tinyet_clamp(rounded(2 * a * b, f), 0, 255) - 128);
}

TINYET_DSP_INLINE uint32_t doubled(uint32_t pair) { return tinyet_add_int16x2_dsp(pair, pair); }

void tinyet_mul_s8_same_dsp(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_dsp_params *params) {
  const factor f = factor_of(params);
  const uint32_t less_b = tinyet_dup_int16x2_dsp(-params->b_zero_point);
  const int32_t count = params->walk.row;
  int8_t *to = output;
  const int8_t *const end = to + count, *const end4 = to + (count & ~3);
  while (to != end4) {
    const uint32_t y = tinyet_load_dsp(b);
    tinyet_store_dsp(to, four(tinyet_load_dsp(a), doubled(tinyet_add_even_bytes_dsp(less_b, y)),
                              doubled(tinyet_add_odd_bytes_dsp(less_b, y)), f));
    a += 4, b += 4, to += 4;
  }
  while (to != end) {
    *to++ = one(*a++ - params->a_zero_point, *b++ - params->b_zero_point, f);
  }
  tinyet_clamp_rows_dsp(output, &params->walk);
}

static TINYET_DSP_ROW void row_by_one(const int8_t *a, int32_t b, int8_t *output, const tinyet_mul_s8_dsp_params *params) {
  const factor f = factor_of(params);
  const uint32_t pair = tinyet_dup_int16x2_dsp(2 * b);
  const int32_t count = params->walk.row;
  const int8_t *const end = output + count, *const end4 = output + (count & ~3);
  while (output != end4) {
    tinyet_store_dsp(output, four(tinyet_load_dsp(a), pair, pair, f));
    a += 4, output += 4;
  }
  while (output != end) {
    *output++ = one(*a++ - params->a_zero_point, b, f);
  }
}

void tinyet_mul_s8_per_row_dsp(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_dsp_params *params) {
  const int32_t row = params->walk.row;
  for (int32_t i = 0; i < params->walk.rows; i++) {
    row_by_one(a + i * row, b[i] - params->b_zero_point, output + i * row, params);
  }
  tinyet_clamp_rows_dsp(output, &params->walk);
}

void tinyet_mul_s8_per_column_dsp(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_mul_s8_dsp_params *params) {
  const factor f = factor_of(params);
  const uint32_t less_b = tinyet_dup_int16x2_dsp(-params->b_zero_point);
  const int32_t rows = params->walk.rows, row = params->walk.row;
  int32_t c = 0;
  for (; c + 4 <= row; c += 4) {
    const uint32_t y = tinyet_load_dsp(b + c);
    const uint32_t even = doubled(tinyet_add_even_bytes_dsp(less_b, y)),
                   odd = doubled(tinyet_add_odd_bytes_dsp(less_b, y));
    const int8_t *from = a + c;
    int8_t *to = output + c;
    for (int32_t i = rows; i != 0; i--) {
      tinyet_store_dsp(to, four(tinyet_load_dsp(from), even, odd, f));
      from += row, to += row;
    }
  }
  for (; c < row; c++) {
    const int32_t y = b[c] - params->b_zero_point;
    for (int32_t i = 0; i < rows; i++) {
      output[i * row + c] = one(a[i * row + c] - params->a_zero_point, y, f);
    }
  }
  tinyet_clamp_rows_dsp(output, &params->walk);
}
