/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_softmax_dsp.h"

#include "tinyet_fixed_point.h"
#include "tinyet_int8x4_dsp.h"

/* How a row's exponentials are found and become outputs. */
typedef struct {
  const int32_t *exponentials;
  int32_t largest, near;        /* differences from `near` on have no exponential */
  int32_t twice_less, fraction; /* twice the reciprocal, less 2^32; 2^(32 - the last shift) */
} row;

TINYET_DSP_INLINE int32_t exponential(int32_t value, const row r, const int32_t all_near) {
  const int32_t below = r.largest - value;
  return all_near || below < r.near ? r.exponentials[below] : 0;
}

TINYET_DSP_INLINE int32_t sum_of(const int8_t *input, const int8_t *end, const row r, const int32_t all_near) {
  int32_t sum = 0;
  for (; end - input >= 4; input += 4) {
    const int32_t a = exponential(input[0], r, all_near), b = exponential(input[1], r, all_near);
    const int32_t c = exponential(input[2], r, all_near), d = exponential(input[3], r, all_near);
    /* tinyet_as_addend */
    sum = tinyet_smmlar_dsp(a, INT32_C(1) << 20, sum);
    sum = tinyet_smmlar_dsp(b, INT32_C(1) << 20, sum);
    sum = tinyet_smmlar_dsp(c, INT32_C(1) << 20, sum);
    sum = tinyet_smmlar_dsp(d, INT32_C(1) << 20, sum);
  }
  for (; input != end; input++) {
    sum = tinyet_smmlar_dsp(exponential(*input, r, all_near), INT32_C(1) << 20, sum);
  }
  return sum;
}

/* 128 more than the output, before saturation: the product with the reciprocal, rounded, and its last shift. */
TINYET_DSP_INLINE uint32_t share(int32_t value, const row r, const int32_t all_near) {
  const int32_t e = exponential(value, r, all_near);
  return (uint32_t)tinyet_smmlar_dsp(tinyet_smmlar_dsp(r.twice_less, e, e), r.fraction, 0);
}

TINYET_DSP_INLINE void shares(const int8_t *input, int8_t *output, const int8_t *end, const row r,
                              const int32_t all_near) {
  for (; end - input >= 4; input += 4, output += 4) {
    const uint32_t a = share(input[0], r, all_near), b = share(input[1], r, all_near);
    const uint32_t c = share(input[2], r, all_near), d = share(input[3], r, all_near);
    tinyet_store_dsp(output, tinyet_join_bytes_dsp(tinyet_saturate_int16x2_dsp(tinyet_low_int16x2_dsp(a, c)),
                                                   tinyet_saturate_int16x2_dsp(tinyet_low_int16x2_dsp(b, d))));
  }
  for (; input != end; input++) {
    const uint32_t value = share(*input, r, all_near);
    *output++ = (int8_t)((int32_t)(value < 255u ? value : 255u) - 128);
  }
}

/* The largest and the smallest value. */
TINYET_DSP_INLINE void range_of(const int8_t *input, const int8_t *end, int32_t *largest, int32_t *smallest) {
  const int8_t *const last = end - 4;
  uint32_t most = tinyet_load_dsp(last), least = most;
  for (; input < last; input += 4) {
    const uint32_t values = tinyet_load_dsp(input);
    most = tinyet_greater_bytes_dsp(values, most);
    least = tinyet_lesser_bytes_dsp(values, least);
  }
  most = tinyet_greater_bytes_dsp(most, most >> 16);
  least = tinyet_lesser_bytes_dsp(least, least >> 16);
  *largest = (int8_t)(uint8_t)tinyet_greater_bytes_dsp(most, most >> 8);
  *smallest = (int8_t)(uint8_t)tinyet_lesser_bytes_dsp(least, least >> 8);
}

static TINYET_DSP_ROW void all_near_row(const int8_t *input, int8_t *output, const int8_t *end, row r) {
  shares(input, output, end, r, 1);
}

static TINYET_DSP_ROW void any_row(const int8_t *input, int8_t *output, const int8_t *end, row r) {
  shares(input, output, end, r, 0);
}

void tinyet_softmax_s8_dsp(const int8_t *input, int8_t *output, const tinyet_softmax_s8_params *params) {
  const int32_t depth = params->shape.depth;
  for (int32_t n = params->shape.outer; n != 0; n--) {
    const int8_t *const end = input + depth;
    int32_t smallest;
    row r = {params->exponentials, 0, params->count, 0, 0};
    range_of(input, end, &r.largest, &smallest);
    const int32_t all_near = r.largest - smallest < params->count;
    const int32_t sum = all_near ? sum_of(input, end, r, 1) : sum_of(input, end, r, 0);
    const int32_t headroom = tinyet_leading_zeros((uint32_t)sum);
    /* 31 fraction bits of the exponential become 8, the sum's scale is undone: 23 bits and more, as the largest exponential
     * is 1; 32 and more leave nothing. */
    const int32_t shift = 12 - headroom + 31 - 8;
    r.twice_less = (int32_t)((uint32_t)tinyet_reciprocal_of_sum(sum, headroom) * 2u);
    r.fraction = shift < 32 ? INT32_C(1) << (32 - shift) : 0;
    if (all_near) {
      all_near_row(input, output, end, r);
    } else {
      any_row(input, output, end, r);
    }
    input += depth;
    output += depth;
  }
}
