/* SPDX-License-Identifier: Apache-2.0 */
/* What recurrent layers share: where the steps of a sequence are, and in int8 the sums that gates are made of. */
#ifndef TINYET_RECURRENT_H
#define TINYET_RECURRENT_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In elements. Where only the last state is asked for, y is where that goes, and y_step is 0. */
typedef struct {
  int32_t batch, steps;
  int32_t inputs, units, outputs;    /* of a step; outputs: of the state that goes from step to step */
  int32_t x_first, x_step;           /* where the first step is in a sequence of inputs, and the next one from there */
  int32_t y_first, y_step, y_batch;  /* the same in the outputs, and the next sequence of them */
} tinyet_recurrent_shape;

/* One of the matrices that a layer's gates are made of. */
typedef struct {
  /* [gates][units / 4][depth / 4][4][4], rounded up with zeros: four inputs of each of four rows */
  const TINYET_ROM int8_t *weights;
  const TINYET_ROM int32_t *bias; /* [gates][units], units rounded up to fours; the input's zero point is in it */
  int32_t depth;
  int32_t multiplier[4], form[4]; /* of each gate, as tinyet_requantize_form has them */
} tinyet_gate_part_s8;

/* The same of values in int16. */
typedef struct {
  /* [gates][units / 4][depth / 2][8], rounded up with zeros: a0 b0 a1 b1 c0 d0 c1 d1 of two inputs and four rows */
  const TINYET_ROM int8_t *weights;
  const TINYET_ROM int64_t *bias; /* [gates][units], units rounded up to fours */
  int32_t depth, block;           /* block: how many pairs of products a sum of 32 bits holds */
  int32_t multiplier[4], shift[4]; /* of each gate, as tinyet_requantize_s64 has them */
} tinyet_gate_part_s16;

#ifdef __cplusplus
}
#endif

#endif
