/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM for cores with DSP instructions: weights of two rows in an int16, by functions that are printed for its input and for
 * its state (tinyet_gates_dsp.h). */
#ifndef TINYET_LSTM_DSP_H
#define TINYET_LSTM_DSP_H

#include "tinyet_gates_dsp.h"
#include "tinyet_lstm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* scratch: four gates of int16, units rounded up to fours; behind them int16 for each value of the input or of the state,
 * whichever has more, rounded up to fours, and a word; with a projection at least units bytes. */
void tinyet_lstm_s8_dsp(const int8_t *x, const int8_t *h, const int16_t *c, int8_t *y, int8_t *h_n, int16_t *c_n,
                        void *scratch, const tinyet_lstm_s8_params *params, tinyet_gates_function_dsp of_x,
                        tinyet_gates_function_dsp of_h);
void tinyet_lstm_projected_s8_dsp(const int8_t *x, const int8_t *h, const int16_t *c, int8_t *y, int8_t *h_n, int16_t *c_n,
                                  void *scratch, const tinyet_lstm_projected_s8_params *params,
                                  tinyet_gates_function_dsp of_x, tinyet_gates_function_dsp of_h);
void tinyet_lstm_s8_lut_dsp(const int8_t *x, const int8_t *h, const int16_t *c, int8_t *y, int8_t *h_n, int16_t *c_n,
                            void *scratch, const tinyet_lstm_s8_pwl_params *params, tinyet_gates_function_dsp of_x,
                            tinyet_gates_function_dsp of_h);

#ifdef __cplusplus
}
#endif

#endif
