/* SPDX-License-Identifier: Apache-2.0 */
/* A layer of gated recurrent units over sequences x, [batch][steps][inputs], from a state h on. y takes the state behind each
 * step, h_n the one behind the last; y may be h_n. The steps are a loop. */
#ifndef TINYET_GRU_H
#define TINYET_GRU_H

#include "tinyet_recurrent.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  tinyet_recurrent_shape shape;
  tinyet_gate_part_s8 x, h; /* gates in the order n, r, z of x, and r, z, n of h */
  int32_t multiplier, form; /* from Q0.30 to 2^-15 steps of the state, as tinyet_requantize_form has them */
  int32_t zero_point;       /* of the state */
} tinyet_gru_s8_params;

/* Gates as TFLM's LSTM has them (tinyet_gates_lut.h). */
typedef struct {
  tinyet_recurrent_shape shape;
  tinyet_gate_part_s16 x, h; /* as in int8 */
  int32_t multiplier, form;  /* from a product of gates to steps of the state, as tinyet_requantize_form has them */
  const TINYET_ROM uint16_t *table; /* [256], sigmoid(i / 24) in Q0.16 */
} tinyet_gru_s16_params;

typedef struct {
  tinyet_recurrent_shape shape;
  const TINYET_ROM float *weights; /* [units][inputs + units][3]: r, z, n */
  const TINYET_ROM float *bias;    /* [units][4]: r, z, n of x, n of h */
} tinyet_gru_f32_params;

/* scratch: four sums of int16, units rounded up to fours. */
void tinyet_gru_s8(const int8_t *x, const int8_t *h, int8_t *y, int8_t *h_n, void *scratch, const tinyet_gru_s8_params *params);
void tinyet_gru_s16(const int16_t *x, const int16_t *h, int16_t *y, int16_t *h_n, void *scratch,
                    const tinyet_gru_s16_params *params);

/* scratch: units. Sums in the order bias, x, h. */
void tinyet_gru_f32(const float *x, const float *h, float *y, float *h_n, void *scratch, const tinyet_gru_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
