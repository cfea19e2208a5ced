/* SPDX-License-Identifier: Apache-2.0 */
/* The average of a window of int8 or int16 values, halves away from zero, without a division where Python proved a reciprocal
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

/* One output pixel: averages over rows x columns taps, `row_step` and `column_step` bytes apart, for each channel. Four
 * channels stay in registers while the window is walked. */
static inline void tinyet_average_pixel(const int8_t *corner, int8_t *output, int32_t channels, int32_t rows,
                                        int32_t columns, int32_t row_step, int32_t column_step,
                                        const tinyet_division *division) {
  int32_t c = 0;
  for (; c + 4 <= channels; c += 4) {
    int32_t s0 = division->start, s1 = s0, s2 = s0, s3 = s0;
    const int8_t *row = corner + c;
    for (int32_t i = rows; i != 0; i--) {
      const int8_t *x = row;
      for (int32_t j = columns; j != 0; j--) {
        s0 += x[0], s1 += x[1], s2 += x[2], s3 += x[3];
        x += column_step;
      }
      row += row_step;
    }
    output[c] = tinyet_divide(s0, division);
    output[c + 1] = tinyet_divide(s1, division);
    output[c + 2] = tinyet_divide(s2, division);
    output[c + 3] = tinyet_divide(s3, division);
  }
  for (; c < channels; c++) {
    int32_t sum = division->start;
    const int8_t *row = corner + c;
    for (int32_t i = rows; i != 0; i--) {
      const int8_t *x = row;
      for (int32_t j = columns; j != 0; j--) {
        sum += *x;
        x += column_step;
      }
      row += row_step;
    }
    output[c] = tinyet_divide(sum, division);
  }
}

/* The same for int16; steps in elements. */
static inline void tinyet_average_pixel_s16(const int16_t *corner, int16_t *output, int32_t channels, int32_t rows,
                                            int32_t columns, int32_t row_step, int32_t column_step,
                                            const tinyet_division *division) {
  for (int32_t c = 0; c < channels; c++) {
    int32_t sum = division->start;
    const int16_t *row = corner + c;
    for (int32_t i = rows; i != 0; i--) {
      const int16_t *x = row;
      for (int32_t j = columns; j != 0; j--) {
        sum += *x;
        x += column_step;
      }
      row += row_step;
    }
    output[c] = (int16_t)tinyet_clamp(tinyet_divide_wide(sum, division), INT16_MIN, INT16_MAX);
  }
}

#ifdef __cplusplus
}
#endif

#endif
