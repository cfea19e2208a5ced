/* SPDX-License-Identifier: Apache-2.0 */
/* int8 fully connected layers for cores with Helium, row by row, eight outputs at a time.
 *
 * The stream, for each eight outputs: their biases, with the input's zero point in them; for each sixteen inputs the weights of
 * the first output, those of the second, …, zeros behind the last input. Behind all of it, for each four outputs, four
 * multipliers and four shifts. */
#ifndef TINYET_LINEAR_MVE_H
#define TINYET_LINEAR_MVE_H

#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t rows, depth, count;
  int32_t eights; /* groups of outputs */
  int32_t ends;   /* bytes of the stream before these */
  tinyet_rounding_mve rounding;
} tinyet_linear_shape_mve;

/* scratch: 32 * eights bytes; where depth is no multiple of sixteen, a row of inputs, and sixteen bytes. */
void tinyet_linear_s8_1x8_mve(const int8_t *input, int8_t *output, void *scratch, const int8_t *weights,
                              const tinyet_linear_shape_mve *shape);

#ifdef __cplusplus
}
#endif

#endif
