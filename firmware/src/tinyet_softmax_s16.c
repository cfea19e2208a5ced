/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_softmax.h"
#include "tinyet_table.h"

/* One column: `depth` elements `stride` apart. The output holds the exponentials, Q0.15, in between. */
static void column(const int16_t *input, int16_t *output, int32_t depth, int32_t stride,
                   const tinyet_softmax_s16_params *p) {
  const int32_t span = depth * stride;
  int32_t largest = INT16_MIN;
  for (int32_t i = 0; i < span; i += stride) {
    largest = input[i] > largest ? input[i] : largest;
  }
  int32_t sum = 0; /* Q16.15 */
  for (int32_t i = 0; i < span; i += stride) {
    const int32_t scaled = tinyet_requantize(input[i] - largest, p->multiplier, p->shift) + INT16_MAX;
    const int32_t value = tinyet_look_up_s16(p->exponentials, tinyet_clamp(scaled, INT16_MIN, INT16_MAX));
    output[i] = (int16_t)value;
    sum += value;
  }
  const int32_t headroom = tinyet_leading_zeros((uint32_t)sum);
  /* The sum as 1 + x with 16 fraction bits of x, which the table takes less 32768. */
  const int32_t fraction =
      (int32_t)((((uint32_t)sum << (headroom - 1)) + (1u << 13)) >> 14) - (INT32_C(1) << 16) - (INT32_C(1) << 15);
  const int32_t reciprocal = tinyet_look_up_s16(p->reciprocals, tinyet_clamp(fraction, INT16_MIN, INT16_MAX));
  const int32_t shift = 31 - headroom;
  for (int32_t i = 0; i < span; i += stride) {
    const int32_t value = (output[i] * reciprocal + (INT32_C(1) << (shift - 1))) >> shift;
    output[i] = (int16_t)tinyet_clamp(value, 0, INT16_MAX);
  }
}

void tinyet_softmax_s16(const int16_t *input, int16_t *output, const tinyet_softmax_s16_params *params) {
  const tinyet_softmax_shape s = params->shape;
  for (int32_t n = 0; n < s.outer; n++) {
    for (int32_t i = 0; i < s.inner; i++) {
      column(input + i, output + i, s.depth, s.inner, params);
    }
    input += s.depth * s.inner;
    output += s.depth * s.inner;
  }
}
