/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of four gates of a unit in float32. */
#ifndef TINYET_GATES_F32_H
#define TINYET_GATES_F32_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds the products of `count` values with their weights, four side by side, one after another; gives the weights behind
 * them. */
static inline const TINYET_ROM float *tinyet_gates_f32(const float *x, int32_t count, const TINYET_ROM float *w,
                                                       float sums[4]) {
  float a = sums[0], b = sums[1], c = sums[2], d = sums[3];
  for (; count != 0; count--) {
    const float value = *x++;
    a += value * w[0], b += value * w[1], c += value * w[2], d += value * w[3];
    w += 4;
  }
  sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
  return w;
}

#ifdef __cplusplus
}
#endif

#endif
