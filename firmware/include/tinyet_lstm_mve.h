/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM for cores with Helium: weights in eights of rows, as tinyet_gate_sums_mve.h has them. */
#ifndef TINYET_LSTM_MVE_H
#define TINYET_LSTM_MVE_H

#include "tinyet_lstm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* scratch: four gates of int16, units rounded up to fours; then int8 for each value of the input or of the state, whichever has
 * more, rounded up to sixteens, and sixteen more; with a projection at least units bytes. */
void tinyet_lstm_s8_mve(const int8_t *x, const int8_t *h, const int16_t *c, int8_t *y, int8_t *h_n, int16_t *c_n,
                        void *scratch, const tinyet_lstm_s8_params *params);
void tinyet_lstm_projected_s8_mve(const int8_t *x, const int8_t *h, const int16_t *c, int8_t *y, int8_t *h_n, int16_t *c_n,
                                  void *scratch, const tinyet_lstm_projected_s8_params *params);
void tinyet_lstm_s8_lut_mve(const int8_t *x, const int8_t *h, const int16_t *c, int8_t *y, int8_t *h_n, int16_t *c_n,
                            void *scratch, const tinyet_lstm_s8_pwl_params *params);

#ifdef __cplusplus
}
#endif

#endif
