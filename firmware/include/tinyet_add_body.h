/* SPDX-License-Identifier: Apache-2.0 */
/* Addition and subtraction of integers of any type. The file that includes this has defined
 *
 *   KERNEL_ADD, KERNEL_SUB   the functions' names
 *   element                  the type of the elements
 *   kernel_params            their parameters
 *   HEADROOM                 operands are multiplied by 2^HEADROOM
 *   A_ZERO_POINT, B_ZERO_POINT, OUT_ZERO_POINT   expressions of the parameters `p` */
#ifndef TINYET_ADD_BODY_H
#define TINYET_ADD_BODY_H

#include "tinyet_binary.h"

static inline int32_t rescaled(int32_t value, int32_t multiplier, int32_t shift) {
  return tinyet_requantize(tinyet_shift_left(value, HEADROOM), multiplier, shift);
}

/* Both operators; sign is 1 or -1. The parameters are copied because a store through element * might change *params. */
static inline void add_or_sub(const element *a, const element *b, element *output, const kernel_params *params,
                              int32_t sign) {
  const kernel_params p = *params;
  TINYET_BROADCAST_ROW(element, int32_t, a, b, output, &params->shape,
                       (element)tinyet_clamp(
                           tinyet_requantize(rescaled(x - A_ZERO_POINT, p.a_multiplier, p.a_shift) +
                                                 sign * rescaled(y - B_ZERO_POINT, p.b_multiplier, p.b_shift),
                                             p.out_multiplier, p.out_shift) +
                               OUT_ZERO_POINT,
                           p.clamp_low, p.clamp_high));
}

static TINYET_NOINLINE void add_row(const element *a, const element *b, element *output, const kernel_params *params) {
  add_or_sub(a, b, output, params, 1);
}

static TINYET_NOINLINE void sub_row(const element *a, const element *b, element *output, const kernel_params *params) {
  add_or_sub(a, b, output, params, -1);
}

void KERNEL_ADD(const element *a, const element *b, element *output, const kernel_params *params) {
  TINYET_BROADCAST(element, a, b, output, params, add_row);
}

void KERNEL_SUB(const element *a, const element *b, element *output, const kernel_params *params) {
  TINYET_BROADCAST(element, a, b, output, params, sub_row);
}

#endif
