/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_linear.h"
#include "tinyet_pairs.h"

/* Four outputs at once: one load of the input feeds four multiply-accumulates. Weights are interleaved, four bytes of each
 * output in turn, so that they are read front to back; `blocks` of four inputs, then `rest` of them one by one. Not
 * inlined, because the loop needs nearly all registers. */
static __attribute__((noinline)) const int8_t *dot_1x4(const int8_t *x, const int8_t *w, int32_t blocks, int32_t rest,
                                                       int32_t sums[4]) {
  int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
#if TINYET_HAS_PAIRS
#define ROW(sum, i)                                                \
  do {                                                             \
    const uint32_t weights = tinyet_load4(w + 4 * (i));            \
    sum = tinyet_mac_pairs(even, tinyet_even_bytes(weights), sum); \
    sum = tinyet_mac_pairs(odd, tinyet_odd_bytes(weights), sum);   \
  } while (0)
#define BLOCK()                                                                              \
  do {                                                                                       \
    const uint32_t values = tinyet_load4(x);                                                 \
    const int32_t even = tinyet_even_bytes(values), odd = tinyet_odd_bytes(values);          \
    ROW(a, 0);                                                                               \
    ROW(b, 1);                                                                               \
    ROW(c, 2);                                                                               \
    ROW(d, 3);                                                                               \
    x += 4;                                                                                  \
    w += 16;                                                                                 \
    __asm__("" ::: "memory"); /* the next block's loads stay behind it: registers are few */ \
  } while (0)
  if ((blocks & 1) != 0) {
    BLOCK();
  }
  for (blocks >>= 1; blocks != 0; blocks--) {
    BLOCK();
    BLOCK();
  }
#undef BLOCK
#undef ROW
#else
  for (; blocks != 0; blocks--) {
    const int32_t x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    a += x0 * w[0] + x1 * w[1] + x2 * w[2] + x3 * w[3];
    b += x0 * w[4] + x1 * w[5] + x2 * w[6] + x3 * w[7];
    c += x0 * w[8] + x1 * w[9] + x2 * w[10] + x3 * w[11];
    d += x0 * w[12] + x1 * w[13] + x2 * w[14] + x3 * w[15];
    x += 4;
    w += 16;
  }
#endif
  for (; rest != 0; rest--) {
    const int32_t value = *x++;
    a += value * w[0], b += value * w[4], c += value * w[8], d += value * w[12];
    w++;
  }
  sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
  return w;
}

void tinyet_linear_s8(const int8_t *input, int8_t *output, const tinyet_linear_s8_params *params) {
  const int32_t depth = params->depth, count = params->out_count, blocks = depth / 4, rest = depth & 3;
  const int32_t zero_point = params->out_zero_point, low = params->clamp_low, high = params->clamp_high;
  for (int32_t row = 0; row < params->rows; row++) {
    const int8_t *w = params->weights;
    for (int32_t n = 0; n < count; n += 4) {
      const int32_t *const bias = params->bias + n;
      int32_t sums[4] = {bias[0], bias[1], bias[2], bias[3]};
      w = dot_1x4(input, w, blocks, rest, sums);
      w += rest != 0 ? 16 - rest : 0;
      const int32_t end = count - n < 4 ? count - n : 4;
      for (int32_t i = 0; i < end; i++) {
        const int32_t multiplier = params->multiplier[n + i], form = params->shift[n + i];
        const int32_t value = tinyet_requantize_form(sums[i], multiplier, form, zero_point);
        *output++ = (int8_t)tinyet_clamp(value, low, high);
      }
    }
    input += depth;
  }
}
