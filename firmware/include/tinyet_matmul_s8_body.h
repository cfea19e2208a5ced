/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix multiplication of int8. The file that includes this has defined
 *
 *   KERNEL                  the function's name
 *   REQUANTIZED(sum, p)     a sum in the output's integers, from its zero point on */
#ifndef TINYET_MATMUL_S8_BODY_H
#define TINYET_MATMUL_S8_BODY_H

#include "tinyet_matmul.h"

static inline int8_t finish(int32_t acc, const tinyet_matmul_s8_params *p) {
  const int32_t value = REQUANTIZED(acc, p);
  return (int8_t)tinyet_clamp(value, p->clamp_low, p->clamp_high);
}

/* One row of a by all columns of b, four columns at once: a load of a feeds four multiply-accumulates, and the four
 * values of b stand side by side. The zero point of b is taken out of the sum of the row. */
static void row_by_matrix(const int8_t *row, const int8_t *b, int8_t *output, const tinyet_matmul_s8_params *p) {
  const int32_t depth = p->depth, columns = p->columns, offset = -p->a_zero_point;
  int32_t start = 0;
  for (int32_t k = 0; k < depth; k++) {
    start += row[k] + offset;
  }
  start *= -p->b_zero_point;
  int32_t n = 0;
  for (; n + 4 <= columns; n += 4) {
    int32_t s0 = start, s1 = start, s2 = start, s3 = start;
    const int8_t *x = row;
    const int8_t *w = b + n;
    for (int32_t k = depth; k != 0; k--) {
      const int32_t value = *x++ + offset;
      s0 += value * w[0], s1 += value * w[1], s2 += value * w[2], s3 += value * w[3];
      w += columns;
    }
    output[n] = finish(s0, p);
    output[n + 1] = finish(s1, p);
    output[n + 2] = finish(s2, p);
    output[n + 3] = finish(s3, p);
  }
  for (; n < columns; n++) {
    int32_t sum = start;
    const int8_t *w = b + n;
    for (int32_t k = 0; k < depth; k++) {
      sum += (row[k] + offset) * *w;
      w += columns;
    }
    output[n] = finish(sum, p);
  }
}

typedef int8_t element;
typedef tinyet_matmul_s8_params kernel_params;
#include "tinyet_matmul_body.h"

#endif
