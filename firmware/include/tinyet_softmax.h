/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and its logarithm along the middle of (outer, depth, inner) elements. The output may be the input. */
#ifndef TINYET_SOFTMAX_H
#define TINYET_SOFTMAX_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t outer, depth, inner;
} tinyet_softmax_shape;

typedef struct {
  tinyet_softmax_shape shape;
  const TINYET_ROM int32_t *exponentials; /* [count], Q0.31: of 0, -1, -2 ... input steps; beyond them it is zero */
  int32_t count;
} tinyet_softmax_s8_params;

/* Output scale 1/256, zero point -128. depth <= 4095. */
void tinyet_softmax_s8(const int8_t *input, int8_t *output, const tinyet_softmax_s8_params *params);

typedef struct {
  tinyet_softmax_shape shape;
  const TINYET_ROM int16_t *exponentials; /* [513], as tinyet_look_up_s16 has tables: exp over -10 ... 0 */
  const TINYET_ROM int16_t *reciprocals;  /* [513], 1 / (1 + x) over 0 ... 1 */
  int32_t multiplier, shift;              /* from input steps to those of the exponentials */
} tinyet_softmax_s16_params;

/* Output scale 2^-15. depth <= 65535. */
void tinyet_softmax_s16(const int16_t *input, int16_t *output, const tinyet_softmax_s16_params *params);

/* exp(x - max) / sum, summed in order. */
void tinyet_softmax_f32(const float *input, float *output, const tinyet_softmax_shape *shape);

typedef struct {
  tinyet_softmax_shape shape;
  const TINYET_ROM int32_t *exponentials; /* as above */
  int32_t count;
  int32_t near;             /* differences from the maximum below this many steps can give more than the least output */
  int32_t multiplier, left; /* from steps to Q5.26 */
} tinyet_log_softmax_s8_params;

/* Output scale 1/16, zero point 127. depth <= 4095. */
void tinyet_log_softmax_s8(const int8_t *input, int8_t *output, const tinyet_log_softmax_s8_params *params);

/* (x - max) - log(sum of exp(x - max)), summed in order. */
void tinyet_log_softmax_f32(const float *input, float *output, const tinyet_softmax_shape *shape);

#ifdef __cplusplus
}
#endif

#endif
