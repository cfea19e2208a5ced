/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_matmul.h"

static inline int16_t finish(int64_t sum, const tinyet_matmul_s16_params *p) {
  return (int16_t)tinyet_clamp(tinyet_requantize_s64(sum, p->multiplier, p->shift), p->clamp_low, p->clamp_high);
}

/* One row of a by all columns of b, two columns at once: sums of 64 bits take two registers each. */
static void row_by_matrix(const int16_t *row, const int16_t *b, int16_t *output, const tinyet_matmul_s16_params *p) {
  const int32_t depth = p->depth, columns = p->columns;
  int32_t n = 0;
  for (; n + 2 <= columns; n += 2) {
    int64_t s0 = 0, s1 = 0;
    const int16_t *x = row;
    const int16_t *w = b + n;
    for (int32_t k = depth; k != 0; k--) {
      const int64_t value = *x++;
      s0 += value * w[0], s1 += value * w[1];
      w += columns;
    }
    output[n] = finish(s0, p);
    output[n + 1] = finish(s1, p);
  }
  if (n < columns) {
    int64_t sum = 0;
    const int16_t *w = b + n;
    for (int32_t k = 0; k < depth; k++) {
      sum += (int64_t)row[k] * *w;
      w += columns;
    }
    output[n] = finish(sum, p);
  }
}

typedef int16_t element;
typedef tinyet_matmul_s16_params kernel_params;
#define KERNEL tinyet_matmul_s16
#include "tinyet_matmul_body.h"
