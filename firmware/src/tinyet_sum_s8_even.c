/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_even.h"
#include "tinyet_reduce.h"

static inline int8_t finish(int32_t sum, const tinyet_sum_s8_params *p) {
  const int32_t value = tinyet_requantize_even(sum, p->multiplier, p->shift, p->out_zero_point);
  return (int8_t)tinyet_clamp(value, INT8_MIN, INT8_MAX);
}

typedef int8_t element;
typedef tinyet_sum_s8_params kernel_params;
#define QUADS 1
#define START params->bias
#define KERNEL tinyet_sum_s8_even
#include "tinyet_sum_body.h"
