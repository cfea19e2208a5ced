/* SPDX-License-Identifier: Apache-2.0 */
/* Round to nearest even (rne), as ONNX Runtime's integer operators do it: sums times a factor in float32, ties to even.
 *
 * Where the core has no floating-point unit, the compiler's library multiplies: the bits are the same. */
#ifndef TINYET_RNE_H
#define TINYET_RNE_H

#include <string.h>

#include "tinyet_common.h"

/* Factors have no form here, and parameters hold one that is not read. */
#define TINYET_FORM(shifts, channel) ((shifts)[0])

#ifdef __cplusplus
extern "C" {
#endif

/* The integer nearest to x, ties to even; x is cut off at -1024 and 1024 first, which are beyond all int8 less a zero
 * point. Adding 1.5 * 2^23 leaves no bit for a fraction. */
static inline int32_t tinyet_round_half_even(float x) {
  const float bounded = x < -1024.0f ? -1024.0f : (x > 1024.0f ? 1024.0f : x);
  const float shifted = bounded + 12582912.0f;
  int32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  return bits - 0x4b400000;
}

/* zero_point + sum * factor; the factor is given as the bits of a float, in the place that other roundings have for their
 * multiplier. form: of other roundings. */
static inline int32_t tinyet_requantize_rne(int32_t sum, int32_t factor, int32_t form, int32_t zero_point) {
  float scale;
  (void)form;
  memcpy(&scale, &factor, sizeof scale);
  return tinyet_round_half_even((float)sum * scale) + zero_point;
}

#ifdef __cplusplus
}
#endif

#endif
