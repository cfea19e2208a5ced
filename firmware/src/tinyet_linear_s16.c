/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_linear.h"
#include "tinyet_pairs.h"

/* Four outputs at once: one load of a pair of inputs feeds eight products. Adds `steps` pairs; gives the weights behind
 * them. Not inlined, because the loop needs nearly all registers. */
static __attribute__((noinline)) const TINYET_ROM int8_t *dot_1x4(const int16_t *x, const TINYET_ROM int8_t *w,
                                                                  int32_t steps, int32_t sums[4]) {
  int32_t a = 0, b = 0, c = 0, d = 0;
#if TINYET_HAS_PAIRS
  for (; steps > 0; steps--) {
    const int32_t pair = (int32_t)tinyet_load4(x);
    const uint32_t first = tinyet_load4(w), second = tinyet_load4(w + 4);
    a = tinyet_mac_pairs(tinyet_even_bytes(first), pair, a);
    b = tinyet_mac_pairs(tinyet_odd_bytes(first), pair, b);
    c = tinyet_mac_pairs(tinyet_even_bytes(second), pair, c);
    d = tinyet_mac_pairs(tinyet_odd_bytes(second), pair, d);
    x += 2;
    w += 8;
  }
#else
  for (; steps > 0; steps--) {
    const int32_t x0 = x[0], x1 = x[1];
    a += x0 * w[0] + x1 * w[2];
    b += x0 * w[1] + x1 * w[3];
    c += x0 * w[4] + x1 * w[6];
    d += x0 * w[5] + x1 * w[7];
    x += 2;
    w += 8;
  }
#endif
  sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
  return w;
}

void tinyet_linear_s16(const int16_t *input, int16_t *output, const tinyet_linear_s16_params *params) {
  const int32_t depth = params->depth, count = params->out_count, block = params->block;
  const int32_t low = params->clamp_low, high = params->clamp_high;
  for (int32_t row = 0; row < params->rows; row++) {
    const TINYET_ROM int8_t *w = params->weights;
    for (int32_t n = 0; n < count; n += 4) {
      const TINYET_ROM int64_t *const bias = params->bias + n;
      int64_t total[4] = {bias[0], bias[1], bias[2], bias[3]};
      const int16_t *x = input;
      for (int32_t left = depth / 2; left > 0; left -= block) {
        const int32_t now = left < block ? left : block;
        int32_t sums[4];
        w = dot_1x4(x, w, now, sums);
        x += 2 * now;
        total[0] += sums[0], total[1] += sums[1], total[2] += sums[2], total[3] += sums[3];
      }
      if ((depth & 1) != 0) { /* half a pair: there is no input beyond it to load */
        const int32_t last = *x;
        total[0] += last * w[0], total[1] += last * w[1], total[2] += last * w[4], total[3] += last * w[5];
        w += 8;
      }
      const int32_t end = count - n < 4 ? count - n : 4;
      for (int32_t i = 0; i < end; i++) {
        const int32_t value = tinyet_requantize_s64(total[i], params->multiplier[n + i], params->shift[n + i]);
        *output++ = (int16_t)tinyet_clamp(value, low, high);
      }
    }
    input += depth;
  }
}
