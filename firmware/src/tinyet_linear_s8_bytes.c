/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_byte_products.h"

/* The sum of a channel's products with one row of inputs. */
static TINYET_BYTES_APART uint32_t products(const uint8_t *x, const TINYET_ROM uint8_t *w, tinyet_extent taps) {
  uint32_t sum = 0u;
#ifdef __AVR__
  while (taps > 0) {
    uint8_t count = taps > 256 ? 0u : (uint8_t)taps, value, weight;
    const uint8_t zero = 0u;
    tinyet_bytes_sum a = 0u;
    __asm__ volatile(
        "1:\n"
        "lpm %[w], Z+\n" TINYET_BYTES_TAP("x", "a")
        "dec %[count]\n"
        "brne 1b\n"
        "clr __zero_reg__\n"
        : "+x"(x), "+z"(w), [count] "+&r"(count), [x] "=&r"(value), [w] "=&r"(weight), [a] "+&r"(a)
        : [zero] "r"(zero)
        : "memory", "r0");
    sum += a;
    taps = taps > 256 ? taps - 256 : 0;
  }
#else
  for (; taps > 0; taps--) {
    sum += *x++ * (uint32_t)*w++;
  }
#endif
  return sum;
}

void tinyet_linear_s8_bytes(const int8_t *input, int8_t *output, void *scratch,
                            const tinyet_linear_s8_bytes_params *params) {
  const tinyet_packed_words *const words = &params->words;
  const tinyet_extent depth = TINYET_EXTENT(params->depth), count = TINYET_EXTENT(words->out_c);
  const uint8_t step = words->two_sided != 0 ? 7u : 5u;
  for (tinyet_extent row = TINYET_EXTENT(params->rows); row > 0; row--) {
    uint8_t *u = (uint8_t *)scratch;
    uint32_t total = 0u;
    for (tinyet_extent i = depth; i > 0; i--) {
      const uint8_t value = (uint8_t)((uint8_t)*input++ ^ 0x80u);
      *u++ = value;
      total += value;
    }
    const uint32_t less = total << 7;
    const TINYET_ROM uint32_t *f = words->stream;
    const TINYET_ROM uint8_t *w = params->weights;
    for (tinyet_extent c = count; c > 0; c--) {
      const uint32_t sum = f[0] - less + products((const uint8_t *)scratch, w, depth);
      *output++ = tinyet_bytes_output(sum, f + 1, words->two_sided != 0, (int8_t)words->clamp_low,
                                         (int8_t)words->clamp_high);
      f += step;
      w += depth;
    }
  }
}
