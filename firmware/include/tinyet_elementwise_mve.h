/* SPDX-License-Identifier: Apache-2.0 */
/* int8 arithmetic element by element for cores with Helium, sixteen values at a time: see tinyet_mve.h. */
#ifndef TINYET_ELEMENTWISE_MVE_H
#define TINYET_ELEMENTWISE_MVE_H

#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* clamp((offset + a * a_factor + b * b_factor) / 2^(16 + shift)), rounded down; shift: 5 or 6. Proved ahead of time to be what
 * tinyet_add_s8 or tinyet_sub_s8 gives for every pair of values; nothing leaves int32. The offset lacks what the two rounding
 * shifts by which it is done add, 2^15 and 2^(15 + shift). */
typedef struct {
  int32_t count, a_factor, b_factor, offset;
  int32_t shift, low, high;
} tinyet_affine_s8_mve_params;

/* The output may be an operand. */
void tinyet_affine_s8_same_mve(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_affine_s8_mve_params *params);

#ifdef __cplusplus
}
#endif

#endif
