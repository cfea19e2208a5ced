/* SPDX-License-Identifier: Apache-2.0 */
/* The parametric ReLU of integers of any type. The file that includes this has defined
 *
 *   KERNEL            the function's name
 *   element           the type of the elements
 *   kernel_params     its parameters
 *   LEAST, GREATEST   the limits of an element
 *   X_ZERO_POINT, SLOPE_ZERO_POINT, OUT_ZERO_POINT   expressions of the parameters `p` */
#ifndef TINYET_PRELU_BODY_H
#define TINYET_PRELU_BODY_H

#include "tinyet_binary.h"

static inline int32_t sloped(int32_t x, int32_t slope, const kernel_params *p) {
  return x >= 0 ? tinyet_requantize(x, p->positive_multiplier, p->positive_shift)
                : tinyet_requantize(x * slope, p->negative_multiplier, p->negative_shift);
}

static TINYET_NOINLINE void row(const element *a, const element *b, element *output, const kernel_params *params) {
  const kernel_params p = *params; /* a copy, because a store through element * might change *params */
  TINYET_BROADCAST_ROW(
      element, int32_t, a, b, output, &params->shape,
      (element)tinyet_clamp(sloped(x - X_ZERO_POINT, y - SLOPE_ZERO_POINT, &p) + OUT_ZERO_POINT, LEAST, GREATEST));
}

void KERNEL(const element *x, const element *slope, element *output, const kernel_params *params) {
  TINYET_BROADCAST(element, x, slope, output, params, row);
}

#endif
