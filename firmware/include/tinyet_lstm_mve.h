/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM for cores with Helium: weights in eights of rows, in int8 as tinyet_gate_sums_mve.h has them. */
#ifndef TINYET_LSTM_MVE_H
#define TINYET_LSTM_MVE_H

#include "tinyet_lstm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* scratch: four gates of int16, units rounded up to fours; then int8 for each value of the input or of the state,
 * whichever has more, rounded up to sixteens, and sixteen more; with a projection at least units bytes. */
void tinyet_lstm_s8_mve(const int8_t *x, const int8_t *h, const int16_t *c, int8_t *y, int8_t *h_n, int16_t *c_n,
                        void *scratch, const tinyet_lstm_s8_params *params);
void tinyet_lstm_projected_s8_mve(const int8_t *x, const int8_t *h, const int16_t *c, int8_t *y, int8_t *h_n, int16_t *c_n,
                                  void *scratch, const tinyet_lstm_projected_s8_params *params);
void tinyet_lstm_s8_lut_mve(const int8_t *x, const int8_t *h, const int16_t *c, int8_t *y, int8_t *h_n, int16_t *c_n,
                            void *scratch, const tinyet_lstm_s8_pwl_params *params);

/* In int16, with weights, multipliers and forms as tinyet_gate_sums_s16_mve.h has them. */
typedef struct {
  tinyet_recurrent_shape shape;
  tinyet_gate_part_s8 x, h;
  int32_t cell_bits;
  int32_t multiplier, form;
  int32_t cell_low, cell_high;
  const int32_t *pieces; /* [512], as tinyet_gates_pwl.h has them */
} tinyet_lstm_s16_mve_params;

/* scratch: four gates; then int16 for each value of the input or of the state, whichever has more, rounded up to
 * eights. */
void tinyet_lstm_s16_mve(const int16_t *x, const int16_t *h, const int16_t *c, int16_t *y, int16_t *h_n, int16_t *c_n,
                         void *scratch, const tinyet_lstm_s16_mve_params *params);

#ifdef __cplusplus
}
#endif

#endif
