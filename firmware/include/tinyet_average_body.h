/* SPDX-License-Identifier: Apache-2.0 */
/* The average of a window of integers of any type. The file that includes this has defined
 *
 *   element           the type of the elements
 *   LEAST, GREATEST   its limits
 *   QUADS             1: four channels stay in registers while the window is walked; 0: one */
#ifndef TINYET_AVERAGE_BODY_H
#define TINYET_AVERAGE_BODY_H

#include "tinyet_average.h"

static inline element average(int32_t sum, const tinyet_division *division) {
  return (element)tinyet_clamp(tinyet_divide_wide(sum, division), LEAST, GREATEST);
}

/* One output pixel: averages over rows x columns taps, `row_step` and `column_step` elements apart, for each channel. */
static inline void average_pixel(const element *corner, element *output, int32_t channels, int32_t rows,
                                 int32_t columns, int32_t row_step, int32_t column_step,
                                 const tinyet_division *division) {
  int32_t c = 0;
#if QUADS
  for (; c + 4 <= channels; c += 4) {
    int32_t s0 = division->start, s1 = s0, s2 = s0, s3 = s0;
    const element *row = corner + c;
    for (int32_t i = rows; i != 0; i--) {
      const element *x = row;
      for (int32_t j = columns; j != 0; j--) {
        s0 += x[0], s1 += x[1], s2 += x[2], s3 += x[3];
        x += column_step;
      }
      row += row_step;
    }
    output[c] = average(s0, division);
    output[c + 1] = average(s1, division);
    output[c + 2] = average(s2, division);
    output[c + 3] = average(s3, division);
  }
#endif
  for (; c < channels; c++) {
    int32_t sum = division->start;
    const element *row = corner + c;
    for (int32_t i = rows; i != 0; i--) {
      const element *x = row;
      for (int32_t j = columns; j != 0; j--) {
        sum += *x;
        x += column_step;
      }
      row += row_step;
    }
    output[c] = average(sum, division);
  }
}

#endif
