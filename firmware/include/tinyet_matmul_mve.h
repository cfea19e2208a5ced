/* SPDX-License-Identifier: Apache-2.0 */
/* Products of int8 matrices for cores with Helium: the second one is packed as weights of a fully connected layer are
 * (tinyet_linear_mve.h), whose products are used. */
#ifndef TINYET_MATMUL_MVE_H
#define TINYET_MATMUL_MVE_H

#include "tinyet_linear_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sums to outputs. shift: -1 ... -31. */
typedef struct {
  int32_t multiplier, shift, zero_point, low, high;
} tinyet_matmul_rounding_mve;

/* count: of products of matrices. eights: of columns. parts: of a row, the first `wider` of `vectors` vectors of sixteen values, by
 * `products`, the others of one less, by `fewer_products`. */
typedef struct {
  int32_t count, rows, depth, columns;
  int32_t eights, parts, wider, vectors;
  int32_t a_zero_point, b_zero_point;
  tinyet_matmul_rounding_mve rounding;
  tinyet_linear_products_mve products, fewer_products;
} tinyet_matmul_shape_mve;

/* Row k of b, a value for each column, to its places: the first one's, and the bytes from eight columns to the next. */
void tinyet_matmul_pack_mve(const int8_t *b, int8_t *packed, int32_t columns, int32_t step);
/* values[i] = values[i] * factor + offset, of a multiple of eight. */
void tinyet_matmul_biases_mve(int32_t *values, int32_t factor, int32_t offset, int32_t count);
/* The sum of so many values. */
int32_t tinyet_matmul_row_sum_mve(const int8_t *row, int32_t count);
/* Of sums, to each of which something is added. */
void tinyet_matmul_outputs_mve(const int32_t *sums, int32_t added, int8_t *output, int32_t count,
                               const tinyet_matmul_rounding_mve *rounding);

/* The sums of a row of depth values. */
TINYET_DSP_INLINE void tinyet_matmul_row_mve(const int8_t *inputs, const int32_t *from, int32_t *sums, const int8_t *packed,
                                             const tinyet_matmul_shape_mve *s) {
  int32_t *const end = sums + 8 * s->eights;
  for (int32_t part = 0; part < s->wider; part++, inputs += 16 * s->vectors, packed += 128 * s->vectors * s->eights) {
    s->products(sums, inputs, part == 0 ? from : sums, packed, end);
  }
  for (int32_t part = s->wider; part < s->parts; part++, inputs += 16 * (s->vectors - 1)) {
    s->fewer_products(sums, inputs, sums, packed, end);
    packed += 128 * (s->vectors - 1) * s->eights;
  }
}

/* All of b; depth is filled up with zeros. */
TINYET_DSP_INLINE void tinyet_matmul_pack_all_mve(const int8_t *b, int8_t *packed, const tinyet_matmul_shape_mve *s) {
  if (s->depth % 16 != 0) {
    const int32_t vectors = s->parts * s->vectors - (s->parts - s->wider);
    tinyet_fill_mve(packed, 0, 128 * vectors * s->eights);
  }
  int32_t k = 0;
  for (int32_t part = 0; part < s->parts; part++) {
    const int32_t vectors = part < s->wider ? s->vectors : s->vectors - 1;
    const int32_t behind = k + 16 * vectors < s->depth ? k + 16 * vectors : s->depth;
    for (int32_t i = 0; k < behind; k++, i++, b += s->columns) {
      tinyet_matmul_pack_mve(b, packed + i / 16 * 128 + i % 16, s->columns, 128 * vectors);
    }
    packed += 128 * vectors * s->eights;
  }
}

/* batches: [count][2], where the two matrices begin in a and in b. scratch: biases, sums, 32 * eights bytes each; b in sixteens of
 * rows and eights of columns; a row of inputs in sixteens. All of the shape are literals. */
TINYET_DSP_INLINE void tinyet_matmul_s8_mve(const int8_t *a, const int8_t *b, int8_t *output, void *scratch,
                                            const int32_t *batches, const tinyet_matmul_shape_mve *s) {
  const int32_t vectors = s->parts * s->vectors - (s->parts - s->wider);
  int32_t *const biases = (int32_t *)scratch, *const sums = biases + 8 * s->eights;
  int8_t *const packed = (int8_t *)(sums + 8 * s->eights), *const row = packed + 128 * vectors * s->eights;
  for (int32_t n = 0; n < s->count; n++) {
    const int8_t *from = a + batches[2 * n];
    if (n == 0 || batches[2 * n + 1] != batches[2 * n - 1]) {
      tinyet_matmul_pack_all_mve(b + batches[2 * n + 1], packed, s);
      tinyet_fill_mve((int8_t *)biases, 0, 32 * s->eights);
      if (s->a_zero_point != 0) { /* sums of columns, as products with ones */
        tinyet_fill_mve(row, 1, 16 * vectors);
        tinyet_matmul_row_mve(row, biases, biases, packed, s);
        const int32_t offset = s->depth * s->a_zero_point * s->b_zero_point;
        tinyet_matmul_biases_mve(biases, -s->a_zero_point, offset, 8 * s->eights);
      }
    }
    for (int32_t i = 0; i < s->rows; i++, from += s->depth, output += s->columns) {
      const int8_t *inputs = from;
      if (s->depth % 16 != 0) {
        tinyet_copy_mve(row, from, s->depth);
        inputs = row;
      }
      tinyet_matmul_row_mve(inputs, biases, sums, packed, s);
      const int32_t added = s->b_zero_point == 0 ? 0 : -s->b_zero_point * tinyet_matmul_row_sum_mve(from, s->depth);
      tinyet_matmul_outputs_mve(sums, added, output, s->columns, &s->rounding);
    }
  }
}

#ifdef __cplusplus
}
#endif

#endif
