/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_linear_mve.h"

void tinyet_linear_products_s16_mve_reference(int32_t *sums, const int8_t *inputs, const int32_t *from,
                                              const int8_t *weights, const int32_t *end, int32_t vectors) {
  for (; sums != end; sums += 8, from += 8) {
    memmove(sums, from, 32);
    for (int32_t k = 0; k < vectors; k++) {
      int16_t values[8];
      memcpy(values, inputs + 16 * k, sizeof values);
      for (int32_t i = 0; i < 8; i++) {
        for (int32_t n = 0; n < 8; n++) {
          sums[i] += values[n] * *weights++;
        }
      }
    }
  }
}

void tinyet_linear_outputs_s16_mve_reference(const int32_t *sums, const int32_t *multipliers, int16_t *output,
                                             int32_t count, const tinyet_rounding_mve *r, int32_t exponent) {
  for (int32_t i = 0; i < count; i++) {
    const int32_t place = (i & ~7) + (i & 1) * 4 + (i & 7) / 2;
    output[i] = tinyet_round_s16_mve(sums[place], multipliers[place], exponent, r->low, r->high);
  }
}
