/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_clamp_rows_dsp.h"
#include "tinyet_int8x4_dsp.h"


TINYET_DSP_INLINE int32_t affine(int32_t value, int32_t factor, int32_t offset) {
  return tinyet_smlawb_dsp(factor, (uint32_t)value << 8, offset);
}

TINYET_DSP_INLINE uint32_t four(uint32_t a, uint32_t mask, int32_t factor, int32_t w0, int32_t w1, int32_t w2,
                                int32_t w3) {
  const uint32_t even = tinyet_upper_even_dsp(a, mask), odd = tinyet_upper_odd_dsp(a, mask);
  const uint32_t first = tinyet_bytes_of_dsp(tinyet_smlawb_dsp(factor, even, w0), tinyet_smlawt_dsp(factor, even, w2));
  return tinyet_join_bytes_dsp(
      first, tinyet_bytes_of_dsp(tinyet_smlawb_dsp(factor, odd, w1), tinyet_smlawt_dsp(factor, odd, w3)));
}

TINYET_DSP_INLINE int8_t one(int32_t a, int32_t factor, int32_t offset) {
  return (int8_t)(tinyet_saturate_dsp((affine(a, factor, offset) >> 16) - 128));
}

static TINYET_DSP_ROW void row_of_one(const int8_t *a, int8_t *output, int32_t count, int32_t factor, int32_t offset) {
  const uint32_t mask = tinyet_upper_mask_dsp();
  const int8_t *const end = output + count, *const end4 = output + (count & ~3);
  while (output != end4) {
    tinyet_store_dsp(output, four(tinyet_load_dsp(a), mask, factor, offset, offset, offset, offset));
    a += 4, output += 4;
  }
  while (output != end) {
    *output++ = one(*a++, factor, offset);
  }
}

void tinyet_affine_s8_same_dsp(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_affine_s8_dsp_params *params) {
  const int32_t u = params->a_factor, v = params->b_factor, w = params->offset, count = params->walk.row;
  const uint32_t mask = tinyet_upper_mask_dsp();
  int8_t *to = output;
  const int8_t *const end = to + count, *const end4 = to + (count & ~3);
  while (to != end4) {
    const uint32_t x = tinyet_load_dsp(a), y = tinyet_load_dsp(b);
    uint32_t xs = tinyet_upper_even_dsp(x, mask), ys = tinyet_upper_even_dsp(y, mask);
    int32_t low = tinyet_smlawb_dsp(v, ys, tinyet_smlawb_dsp(u, xs, w));
    int32_t high = tinyet_smlawt_dsp(v, ys, tinyet_smlawt_dsp(u, xs, w));
    const uint32_t first = tinyet_bytes_of_dsp(low, high);
    xs = tinyet_upper_odd_dsp(x, mask), ys = tinyet_upper_odd_dsp(y, mask);
    low = tinyet_smlawb_dsp(v, ys, tinyet_smlawb_dsp(u, xs, w));
    high = tinyet_smlawt_dsp(v, ys, tinyet_smlawt_dsp(u, xs, w));
    tinyet_store_dsp(to, tinyet_join_bytes_dsp(first, tinyet_bytes_of_dsp(low, high)));
    a += 4, b += 4, to += 4;
  }
  while (to != end) {
    *to++ = one(*a++, u, affine(*b++, v, w));
  }
  tinyet_clamp_rows_dsp(output, &params->walk);
}

void tinyet_affine_s8_per_row_dsp(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_affine_s8_dsp_params *params) {
  const int32_t row = params->walk.row;
  for (int32_t i = 0; i < params->walk.rows; i++) {
    row_of_one(a + i * row, output + i * row, row, params->a_factor, affine(b[i], params->b_factor, params->offset));
  }
  tinyet_clamp_rows_dsp(output, &params->walk);
}

void tinyet_affine_s8_unary_dsp(const int8_t *input, int8_t *output, const tinyet_affine_s8_dsp_params *params) {
  row_of_one(input, output, params->walk.row, params->a_factor, params->offset);
  tinyet_clamp_rows_dsp(output, &params->walk);
}

void tinyet_affine_s8_per_column_dsp(const int8_t *a, const int8_t *b, int8_t *output,
                                     const tinyet_affine_s8_dsp_params *params) {
  const int32_t rows = params->walk.rows, row = params->walk.row, u = params->a_factor, v = params->b_factor;
  const uint32_t mask = tinyet_upper_mask_dsp();
  int32_t c = 0;
  for (; c + 4 <= row; c += 4) {
    const int32_t w0 = affine(b[c], v, params->offset), w1 = affine(b[c + 1], v, params->offset);
    const int32_t w2 = affine(b[c + 2], v, params->offset), w3 = affine(b[c + 3], v, params->offset);
    const int8_t *from = a + c;
    int8_t *to = output + c;
    for (int32_t i = rows; i != 0; i--) {
      tinyet_store_dsp(to, four(tinyet_load_dsp(from), mask, u, w0, w1, w2, w3));
      from += row, to += row;
    }
  }
  for (; c < row; c++) {
    const int32_t w = affine(b[c], v, params->offset);
    for (int32_t i = 0; i < rows; i++) {
      output[i * row + c] = one(a[i * row + c], u, w);
    }
  }
  tinyet_clamp_rows_dsp(output, &params->walk);
}

void tinyet_affine_s8_channels_first_dsp(const int8_t *input, int8_t *output, const tinyet_affine_s8_channels_dsp_params *params) {
  const int32_t row = params->walk.row;
  int32_t channel = 0;
  for (int32_t i = 0; i < params->walk.rows; i++) {
    const int32_t *const constant = params->constants + 2 * channel;
    row_of_one(input + i * row, output + i * row, row, constant[0], constant[1]);
    channel = channel + 1 < params->channels ? channel + 1 : 0;
  }
  tinyet_clamp_rows_dsp(output, &params->walk);
}

/* Four neighbouring columns. */
static TINYET_DSP_ROW void four_columns(const int8_t *from, int8_t *to, int32_t rows, int32_t row,
                                        const int32_t *constants) {
  const int32_t u0 = constants[0], u1 = constants[2], u2 = constants[4], u3 = constants[6];
  const int32_t w0 = constants[1], w1 = constants[3], w2 = constants[5], w3 = constants[7];
  for (int32_t i = rows; i != 0; i--) {
    const uint32_t a = tinyet_load_dsp(from);
    const uint32_t odd = a & 0xff00ff00u, even = (a & 0x00ff00ffu) << 8;
    const uint32_t second = tinyet_bytes_of_dsp(tinyet_smlawb_dsp(u1, odd, w1), tinyet_smlawt_dsp(u3, odd, w3));
    const uint32_t first = tinyet_bytes_of_dsp(tinyet_smlawb_dsp(u0, even, w0), tinyet_smlawt_dsp(u2, even, w2));
    tinyet_store_dsp(to, tinyet_join_bytes_dsp(first, second));
    from += row, to += row;
  }
}

void tinyet_affine_s8_channels_last_dsp(const int8_t *input, int8_t *output, const tinyet_affine_s8_channels_dsp_params *params) {
  const int32_t rows = params->walk.rows, row = params->walk.row;
  const int32_t *constant = params->constants;
  int32_t c = 0;
  for (; c + 4 <= row; c += 4, constant += 8) {
    four_columns(input + c, output + c, rows, row, constant);
  }
  for (; c < row; c++, constant += 2) {
    const int32_t u = constant[0], w = constant[1];
    for (int32_t i = 0; i < rows; i++) {
      output[i * row + c] = one(input[i * row + c], u, w);
    }
  }
  tinyet_clamp_rows_dsp(output, &params->walk);
}
