/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_linear.h"

/* Sums of four outputs at once: one load of the input feeds four multiply-accumulates. */
static void dot_1x4(const int8_t *TINYET_RESTRICT x, const int8_t *TINYET_RESTRICT weights, int32_t depth,
                    int32_t sums[4]) {
  const int8_t *w0 = weights, *w1 = w0 + depth, *w2 = w1 + depth, *w3 = w2 + depth;
  int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
  const int8_t *const end = x + depth;
  while (x != end) {
    const int32_t value = *x++;
    a += value * *w0++;
    b += value * *w1++;
    c += value * *w2++;
    d += value * *w3++;
  }
  sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
}

static int32_t dot_1x1(const int8_t *TINYET_RESTRICT x, const int8_t *TINYET_RESTRICT w, int32_t depth, int32_t sum) {
  for (int32_t k = 0; k < depth; k++) {
    sum += x[k] * w[k];
  }
  return sum;
}

static inline int8_t finish(int32_t acc, int32_t index, const tinyet_linear_s8_params *p) {
  const int32_t value = tinyet_requantize(acc, p->multiplier[index], p->shift[index]) + p->out_zero_point;
  return (int8_t)tinyet_clamp(value, p->clamp_low, p->clamp_high);
}

void tinyet_linear_s8(const int8_t *input, int8_t *output, const tinyet_linear_s8_params *params) {
  const int32_t depth = params->depth, count = params->out_count;
  for (int32_t row = 0; row < params->rows; row++) {
    const int8_t *w = params->weights;
    int32_t n = 0;
    for (; n + 4 <= count; n += 4) {
      int32_t sums[4] = {params->bias[n], params->bias[n + 1], params->bias[n + 2], params->bias[n + 3]};
      dot_1x4(input, w, depth, sums);
      w += 4 * depth;
      for (int32_t i = 0; i < 4; i++) {
        *output++ = finish(sums[i], n + i, params);
      }
    }
    for (; n < count; n++) {
      *output++ = finish(dot_1x1(input, w, depth, params->bias[n]), n, params);
      w += depth;
    }
    input += depth;
  }
}
