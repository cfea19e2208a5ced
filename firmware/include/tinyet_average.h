/* SPDX-License-Identifier: Apache-2.0 */
/* The average of a window of int8 or int16 values, ties away from zero, without a division where Python proved a reciprocal
 * exact for every sum that can occur (tinyet/ops/shared/averaging.py). */
#ifndef TINYET_AVERAGE_H
#define TINYET_AVERAGE_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One row of the table of divisions: how the sum of a window with a given number of taps is rounded. */
typedef struct {
  uint32_t multiplier; /* 0: divide */
  uint32_t shift;
  int32_t start;  /* what taps outside the image add to the sum */
  int32_t offset; /* makes the dividend non-negative and rounds */
  uint32_t even;  /* 1 for an even divisor */
  int32_t bias;   /* undoes the offset */
  int32_t divisor;
} tinyet_division;

enum { TINYET_DIVISION_FIELDS = 7 };

static inline tinyet_division tinyet_division_at(const TINYET_ROM int32_t *table, int32_t row) {
  const TINYET_ROM int32_t *const r = table + row * TINYET_DIVISION_FIELDS;
  const tinyet_division d = {(uint32_t)r[0], (uint32_t)r[1], r[2], r[3], (uint32_t)r[4], r[5], r[6]};
  return d;
}

/* Without saturation. */
static inline int32_t tinyet_divide_wide(int32_t sum, const tinyet_division *d) {
  const uint32_t u = (uint32_t)(sum + d->offset) - (((uint32_t)sum >> 31) & d->even);
  const uint32_t quotient = d->multiplier != 0u ? (u * d->multiplier) >> d->shift : u / (uint32_t)d->divisor;
  return (int32_t)quotient - d->bias;
}

static inline int8_t tinyet_divide(int32_t sum, const tinyet_division *d) {
  return (int8_t)tinyet_clamp(tinyet_divide_wide(sum, d), INT8_MIN, INT8_MAX);
}

#ifdef __cplusplus
}
#endif

#endif
