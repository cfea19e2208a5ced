/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs of sums by the high half of one product; what makes this exact is proved for each layer when code is generated
 * (tinyet/ops/shared/one_product.py). */
#ifndef TINYET_ONE_PRODUCT_H
#define TINYET_ONE_PRODUCT_H

#include <stdint.h>

/* sum: times a power of two; away: what is less where it is negative. */
static inline int8_t tinyet_one_product(int32_t sum, int32_t multiplier, int32_t offset, int32_t away, uint32_t shift) {
  const int32_t high = (int32_t)((int64_t)sum * multiplier >> 32);
  const int32_t value = (high - (away & high >> 31) + offset) >> shift;
  return (int8_t)(value < -128 ? -128 : value > 127 ? 127 : value);
}

/* Where outputs have narrower bounds than their type. */
static inline void tinyet_clamp_outputs(int8_t *outputs, int32_t count, int32_t low, int32_t high) {
  if (low > -128 || high < 127) {
    for (; count > 0; count--, outputs++) {
      const int32_t value = *outputs;
      *outputs = (int8_t)(value < low ? low : value > high ? high : value);
    }
  }
}

#endif
