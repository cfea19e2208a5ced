/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_signal.h"

/* The nearest root that has 16 bits, pair of bits by pair of bits. */
static uint32_t root_of_32(uint32_t number) {
  uint32_t root = 0, rest = number;
  for (uint32_t bit = UINT32_C(1) << ((tinyet_signal_bits(number | 1u) - 1) & ~1); bit != 0u; bit >>= 2) {
    if (rest >= root + bit) {
      rest -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  return rest > root && root != 0xFFFFu ? root + 1u : root;
}

static uint32_t root_of_64(uint64_t number) {
  uint64_t root = 0, rest = number;
  const int32_t highest = 31 + tinyet_signal_bits((uint32_t)(number >> 32));
  for (uint64_t bit = UINT64_C(1) << (highest & ~1); bit != 0u; bit >>= 2) {
    if (rest >= root + bit) {
      rest -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  return (uint32_t)(rest > root && root != 0xFFFFFFFFu ? root + 1u : root);
}

void tinyet_signal_filter_bank_square_root(const uint32_t *input, const int32_t *shift, uint32_t *output,
                                           const tinyet_signal_count *params) {
  const int32_t down = *shift & 31;
  for (int32_t i = 0; i < params->count; i++) {
    const uint32_t low = input[2 * i], high = input[2 * i + 1];
    const uint32_t root = high == 0u ? root_of_32(low) : root_of_64(((uint64_t)high << 32) | low);
    output[i] = root >> down;
  }
}
