/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs of sums by the high half of one product and a shift, counted from a place of their own; what makes this exact is
 * proved for each layer when code is generated (tinyet/ops/shared/straight.py). */
#ifndef TINYET_STRAIGHT_H
#define TINYET_STRAIGHT_H

#include <stdint.h>

/* sum: with what it starts at; place: a multiple of 256, from which the output is counted; zero: below it is what sums below
 * zero have become, whose halves are rounded away from it; less than any product where that is not seen. */
static inline int8_t tinyet_straight(int32_t sum, uint32_t multiplier, uint32_t shift, int32_t place, int32_t zero) {
  const int32_t high = (int32_t)((int64_t)sum * multiplier >> 32);
  const int32_t value = (high - (high < zero)) >> shift, low = place - 128, most = place + 127;
  return (int8_t)(uint8_t)(value < low ? low : value > most ? most : value);
}

#endif
