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

/* Output scale 1/65536, zero point -32768. depth <= 4095. The output is not the input. */
void tinyet_softmax_s8_s16(const int8_t *input, int16_t *output, const tinyet_softmax_s8_params *params);

typedef struct {
  tinyet_softmax_shape shape;
  const TINYET_ROM int32_t *exponentials; /* as above */
  int32_t count;
  int32_t multiplier, shift; /* 1 / output scale: multiplier * 2^(12 - shift) */
  int32_t out_zero_point;
} tinyet_softmax_scaled_s8_params;

/* Output scale above 2^-30. depth <= 4095. */
void tinyet_softmax_scaled_s8(const int8_t *input, int8_t *output, const tinyet_softmax_scaled_s8_params *params);

typedef struct {
  tinyet_softmax_shape shape;
  const TINYET_ROM float *exponentials; /* [256], of 0, -1, -2 ... input steps */
  float steps;                          /* 1 / output scale, whole */
  int32_t out_zero_point;
} tinyet_softmax_s8_rne_params;

/* Any output scale, in float32, summed in order. No product of an exponential and `steps` overflows. */
void tinyet_softmax_s8_rne(const int8_t *input, int8_t *output, const tinyet_softmax_s8_rne_params *params);

typedef struct {
  tinyet_softmax_shape shape;
  const TINYET_ROM int16_t *exponentials; /* [513], as tinyet_lut_interpolate_s16 has tables: exp over -10 ... 0 */
  const TINYET_ROM int16_t *reciprocals;  /* [513], 1 / (1 + x) over 0 ... 1 */
  int32_t multiplier, shift;              /* from input steps to those of the exponentials */
} tinyet_softmax_s16_params;

/* Output scale 2^-15. depth <= 65535. */
void tinyet_softmax_s16(const int16_t *input, int16_t *output, const tinyet_softmax_s16_params *params);

typedef struct {
  tinyet_softmax_s16_params softmax;
  int32_t out_multiplier, out_shift; /* 2^-15 / output scale: out_multiplier * 2^(31 - out_shift), of 15 bits */
} tinyet_softmax_scaled_s16_params;

/* Output scale from 2^-29 to 2^-15. depth <= 65535. */
void tinyet_softmax_scaled_s16(const int16_t *input, int16_t *output, const tinyet_softmax_scaled_s16_params *params);

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

typedef struct {
  tinyet_softmax_shape shape;
  const TINYET_ROM int32_t *exponentials; /* as above */
  int32_t count;
  int32_t multiplier, shift;         /* from input steps to Qm.n, which holds all differences and logarithms */
  int32_t log_shift;                 /* from Q5.26 to Qm.n */
  int32_t out_multiplier, out_shift; /* from Qm.n to output steps */
  int32_t out_zero_point;
} tinyet_log_softmax_scaled_s8_params;

/* Any output scale of which Qm.n has two steps and more. depth <= 4095. */
void tinyet_log_softmax_scaled_s8(const int8_t *input, int8_t *output,
                                  const tinyet_log_softmax_scaled_s8_params *params);

/* (x - max) - log(sum of exp(x - max)), summed in order. */
void tinyet_log_softmax_f32(const float *input, float *output, const tinyet_softmax_shape *shape);

#ifdef __cplusplus
}
#endif

#endif
