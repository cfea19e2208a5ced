/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_int4.h"
#include "tinyet_linear.h"

/* Eight inputs by four outputs: one load of the inputs feeds four outputs. Byte i of an output's word holds the weights of
 * inputs i and i + 4. Not inlined, because the loop needs nearly all registers. */
static __attribute__((noinline)) const TINYET_ROM int8_t *dot_1x4(const int8_t *x, const TINYET_ROM int8_t *w,
                                                                  int32_t blocks, int32_t sums[4]) {
  int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
#if TINYET_HAS_SIMD32
#define ROW(sum, i)                                                                      \
  do {                                                                                   \
    const uint32_t word = tinyet_load4(w + 4 * (i));                                     \
    const uint32_t first = tinyet_low_nibbles(word), second = tinyet_high_nibbles(word); \
    sum = tinyet_mac_int16x2(even0, tinyet_even_bytes(first), sum);                        \
    sum = tinyet_mac_int16x2(odd0, tinyet_odd_bytes(first), sum);                          \
    sum = tinyet_mac_int16x2(even1, tinyet_even_bytes(second), sum);                       \
    sum = tinyet_mac_int16x2(odd1, tinyet_odd_bytes(second), sum);                         \
    __asm__("" ::: "memory"); /* the next load stays behind it: registers are few */     \
  } while (0)
  for (; blocks != 0; blocks--) {
    const uint32_t word0 = tinyet_load4(x), word1 = tinyet_load4(x + 4);
    const int32_t even0 = tinyet_even_bytes(word0), odd0 = tinyet_odd_bytes(word0);
    const int32_t even1 = tinyet_even_bytes(word1), odd1 = tinyet_odd_bytes(word1);
    ROW(a, 0);
    ROW(b, 1);
    ROW(c, 2);
    ROW(d, 3);
    x += 8;
    w += 16;
  }
#undef ROW
#else
#define ROW(sum, i) sum += x0 * tinyet_low_nibble(w[4 * (i)]) + x4 * tinyet_high_nibble(w[4 * (i)])
  for (; blocks != 0; blocks--) {
    for (int32_t k = 0; k < 4; k++) {
      const tinyet_extent x0 = x[0], x4 = x[4];
      ROW(a, 0);
      ROW(b, 1);
      ROW(c, 2);
      ROW(d, 3);
      x++;
      w++;
    }
    x += 4;
    w += 12;
  }
#undef ROW
#endif
  sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
  return w;
}

void tinyet_linear_s8_w4(const int8_t *input, int8_t *output, const tinyet_linear_s8_params *params) {
  const int32_t depth = params->depth, count = params->out_count, blocks = depth / 8, rest = depth & 7;
  const int32_t zero_point = params->out_zero_point, low = params->clamp_low, high = params->clamp_high;
  int8_t tail[8] = {0}; /* the last inputs of a row, when they are no whole block */
  for (int32_t row = 0; row < params->rows; row++) {
    const TINYET_ROM int8_t *w = params->weights;
    memcpy(tail, input + 8 * blocks, (size_t)rest);
    for (int32_t n = 0; n < count; n += 4) {
      int32_t sums[4] = {0, 0, 0, 0};
      w = dot_1x4(input, w, blocks, sums);
      if (rest != 0) {
        w = dot_1x4(tail, w, 1, sums);
      }
      const int32_t end = count - n < 4 ? count - n : 4;
      for (int32_t i = 0; i < end; i++) {
        const int32_t sum = params->bias[n + i] + tinyet_nibble_sum(sums[i]);
        const int32_t value = tinyet_requantize_form(sum, params->multiplier[n + i], params->shift[n + i], zero_point);
        *output++ = (int8_t)tinyet_clamp(value, low, high);
      }
    }
    input += depth;
  }
}
