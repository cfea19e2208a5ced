/* SPDX-License-Identifier: Apache-2.0 */
/* A layer of plain recurrent units over sequences x, [batch][steps][inputs], from a state h on. y takes the state behind each
 * step, h_n the one behind the last; y may be h_n. The steps are a loop. */
#ifndef TINYET_RNN_H
#define TINYET_RNN_H

#include "tinyet_recurrent.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  tinyet_recurrent_shape shape;
  tinyet_gate_part_s8 x, h;
  int32_t relu;             /* or tanh, of sums in Q3.12 */
  int32_t multiplier, form; /* from what that gives to the state, as tinyet_requantize_form has them */
  int32_t zero_point;       /* of the state */
} tinyet_rnn_s8_params;

/* Gates as TFLM's LSTM has them (tinyet_gates_lut.h). */
typedef struct {
  tinyet_recurrent_shape shape;
  tinyet_gate_part_s16 x, h;
  int32_t relu;             /* of sums in units of four steps of the state, or tanh, of sums in Q3.12 */
  int32_t multiplier, form; /* from 2^15 times a tanh to the state, as tinyet_requantize_form has them */
  const TINYET_ROM uint16_t *table; /* [256], sigmoid(i / 24) in Q0.16 */
} tinyet_rnn_s16_params;

typedef struct {
  tinyet_recurrent_shape shape;
  const TINYET_ROM float *weights; /* [units][inputs + units] */
  const TINYET_ROM float *bias;    /* [units] */
  int32_t relu;                    /* or tanh */
} tinyet_rnn_f32_params;

/* scratch: units of int16, rounded up to fours. */
void tinyet_rnn_s8(const int8_t *x, const int8_t *h, int8_t *y, int8_t *h_n, void *scratch, const tinyet_rnn_s8_params *params);
void tinyet_rnn_s16(const int16_t *x, const int16_t *h, int16_t *y, int16_t *h_n, void *scratch,
                    const tinyet_rnn_s16_params *params);

/* scratch: units. Sums in the order bias, x, h. */
void tinyet_rnn_f32(const float *x, const float *h, float *y, float *h_n, void *scratch, const tinyet_rnn_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
