/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_reduce.h"

static inline int16_t finish(int32_t sum, const tinyet_sum_s16_params *p) {
  const int32_t value = tinyet_requantize(sum, p->multiplier, p->shift);
  return (int16_t)tinyet_clamp(value, INT16_MIN, INT16_MAX);
}

typedef int16_t element;
typedef tinyet_sum_s16_params kernel_params;
#define QUADS 0
#define START 0
#define KERNEL tinyet_sum_s16
#include "tinyet_sum_body.h"
