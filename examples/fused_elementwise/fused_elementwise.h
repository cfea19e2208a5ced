/* SPDX-License-Identifier: Apache-2.0 */
/* What the loops that fuser.py writes are made of: the integer arithmetic of tinyet's elementwise operators. */
#ifndef FUSED_ELEMENTWISE_H
#define FUSED_ELEMENTWISE_H

#include <string.h>

#include "tinyet_common.h"

/* An operand of a sum, less its zero point, at the scale that both operands are brought to. */
static inline int32_t fused_operand(int32_t x, int32_t multiplier, int32_t shift) {
  return tinyet_requantize(tinyet_shift_left(x, 20), multiplier, shift);
}

/* A sum or a product as an int8 value of the output. */
static inline int32_t fused_finish(int32_t x, int32_t multiplier, int32_t shift, int32_t zero_point, int32_t low,
                                   int32_t high) {
  return tinyet_clamp(tinyet_requantize(x, multiplier, shift) + zero_point, low, high);
}

static inline tinyet_status fused_copy_tables(void *state, const int8_t *tables, uint32_t bytes) {
  memcpy(state, tables, bytes);
  return TINYET_OK;
}

#endif
