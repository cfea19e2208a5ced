/* SPDX-License-Identifier: Apache-2.0 */
/* Fully connected layers, of int8 or int16 by int8, for cores with Helium, row by row.
 *
 * Printed functions (tinyet/tiles/helium_linear.py) add up the products of up to eight vectors of sixteen inputs, a part of a
 * row, with the weights of eight outputs at a time, and make sixteen outputs of sums.
 *
 * Places of outputs: of each sixteen, those at 0, 4, 8, 12, then those at 1, 5, 9, 13, and so on; of those that are left in
 * order, zeros up to a multiple of eight.
 * The stream: of each place the bias, int32, with the input's zero point in it. For each part of a row, for each eight places, for each
 * sixteen inputs: the weights of the first place, those of the second, …, zeros behind the last input. For each four places
 * four multipliers, int32, and four shifts, int8; of sums that are rounded to even (tinyet_rne_mve.h) four floats.
 *
 * With int16 activations: vectors of eight inputs, eight outputs of sums. Of each eight places those of the even outputs come
 * first, and behind the weights there are multipliers alone, one for each place. */
#ifndef TINYET_LINEAR_MVE_H
#define TINYET_LINEAR_MVE_H

#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Up to the end of the sums; from: where they begin, the biases or the sums so far. */
typedef void (*tinyet_linear_products_mve)(int32_t *sums, const int8_t *inputs, const int32_t *from, const int8_t *weights,
                                           const int32_t *end);
/* blocks: of sixteen; of the last outputs their count. */
typedef void (*tinyet_linear_outputs_mve)(const int32_t *sums, const int8_t *ends, int8_t *output, int32_t blocks,
                                          const tinyet_rounding_mve *rounding);

/* parts: of a row, the first `wider` of `vectors` vectors, by `products`, the others of one less, by `fewer_products`. */
typedef struct {
  int32_t rows, depth, count;
  int32_t eights; /* of places */
  int32_t parts, wider, vectors;
  tinyet_rounding_mve rounding;
  tinyet_linear_products_mve products, fewer_products;
  tinyet_linear_outputs_mve outputs, last_outputs; /* of sixteens, of those that are left; NULL where there are none */
  int32_t ends; /* bytes of the roundings of sixteen outputs */
} tinyet_linear_shape_mve;

void tinyet_linear_products_mve_reference(int32_t *sums, const int8_t *inputs, const int32_t *from,
                                          const int8_t *weights, const int32_t *end, int32_t vectors);
void tinyet_linear_outputs_mve_reference(const int32_t *sums, const int8_t *ends, int8_t *output, int32_t blocks,
                                         const tinyet_rounding_mve *rounding);

/* The same with int16 activations. inputs: their bytes; count: of outputs. */
typedef void (*tinyet_linear_outputs_s16_mve)(const int32_t *sums, const int32_t *multipliers, int16_t *output, int32_t count,
                                              const tinyet_rounding_mve *rounding);
typedef struct {
  int32_t rows, depth, count;
  int32_t eights; /* of places */
  int32_t parts, wider, vectors;
  tinyet_rounding_mve rounding;
  tinyet_linear_products_mve products, fewer_products;
  tinyet_linear_outputs_s16_mve outputs;
} tinyet_linear_s16_shape_mve;

void tinyet_linear_products_s16_mve_reference(int32_t *sums, const int8_t *inputs, const int32_t *from,
                                              const int8_t *weights, const int32_t *end, int32_t vectors);
void tinyet_linear_outputs_s16_mve_reference(const int32_t *sums, const int32_t *multipliers, int16_t *output,
                                             int32_t count, const tinyet_rounding_mve *rounding, int32_t exponent);

void tinyet_linear_outputs_rne_mve_reference(const int32_t *sums, const int8_t *ends, int8_t *output, int32_t blocks,
                                             const tinyet_rounding_mve *rounding);

/* Any number of outputs, whose places are in order. */
void tinyet_linear_last_outputs_mve(const int32_t *sums, const int8_t *ends, int8_t *output, int32_t count,
                                    const tinyet_rounding_mve *rounding);
void tinyet_linear_last_outputs_rne_mve(const int32_t *sums, const int8_t *ends, int8_t *output, int32_t count,
                                        const tinyet_rounding_mve *rounding);

/* scratch: 32 * eights bytes; where depth is no multiple of sixteen, a row of inputs, and sixteen bytes. All of the shape are
 * literals. */
TINYET_DSP_INLINE void tinyet_linear_s8_1x8_mve(const int8_t *input, int8_t *output, void *scratch, const int8_t *weights,
                                                const tinyet_linear_shape_mve *s) {
  int32_t *const sums = (int32_t *)scratch, *const end = sums + 8 * s->eights;
  const int32_t *const biases = (const int32_t *)(const void *)weights;
  int8_t *const row = (int8_t *)end;
  for (int32_t i = 0; i < s->rows; i++, input += s->depth, output += s->count) {
    const int8_t *inputs = s->depth % 16 != 0 ? row : input, *next = weights + 32 * s->eights;
    if (s->depth % 16 != 0) {
      tinyet_copy_mve(row, input, s->depth);
    }
    for (int32_t part = 0; part < s->wider; part++, inputs += 16 * s->vectors, next += 128 * s->vectors * s->eights) {
      s->products(sums, inputs, part == 0 ? biases : sums, next, end);
    }
    for (int32_t part = s->wider; part < s->parts; part++, inputs += 16 * (s->vectors - 1)) {
      s->fewer_products(sums, inputs, sums, next, end);
      next += 128 * (s->vectors - 1) * s->eights;
    }
    const int32_t blocks = s->count / 16, left = s->count % 16;
    if (blocks != 0) {
      s->outputs(sums, next, output, blocks, &s->rounding);
    }
    if (left != 0) {
      s->last_outputs(sums + 16 * blocks, next + s->ends * blocks, output + 16 * blocks, left, &s->rounding);
    }
  }
}

/* The same with int16 activations. scratch: 32 * eights bytes; where depth is no multiple of eight, a row of inputs, and 32
 * bytes. */
TINYET_DSP_INLINE void tinyet_linear_s16_1x8_mve(const int16_t *input, int16_t *output, void *scratch, const int8_t *weights,
                                                 const tinyet_linear_s16_shape_mve *s) {
  int32_t *const sums = (int32_t *)scratch, *const end = sums + 8 * s->eights;
  const int32_t *const biases = (const int32_t *)(const void *)weights;
  int8_t *const row = (int8_t *)end;
  for (int32_t i = 0; i < s->rows; i++, input += s->depth, output += s->count) {
    const int8_t *inputs = s->depth % 8 != 0 ? row : (const int8_t *)input, *next = weights + 32 * s->eights;
    if (s->depth % 8 != 0) {
      tinyet_copy_mve(row, (const int8_t *)input, 2 * s->depth);
    }
    for (int32_t part = 0; part < s->wider; part++, inputs += 16 * s->vectors, next += 64 * s->vectors * s->eights) {
      s->products(sums, inputs, part == 0 ? biases : sums, next, end);
    }
    for (int32_t part = s->wider; part < s->parts; part++, inputs += 16 * (s->vectors - 1)) {
      s->fewer_products(sums, inputs, sums, next, end);
      next += 64 * (s->vectors - 1) * s->eights;
    }
    s->outputs(sums, (const int32_t *)(const void *)next, output, s->count, &s->rounding);
  }
}

#ifdef __cplusplus
}
#endif

#endif
