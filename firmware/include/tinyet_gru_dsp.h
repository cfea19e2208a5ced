/* SPDX-License-Identifier: Apache-2.0 */
/* Gated recurrent units for cores with DSP instructions: weights of two rows in an int16, by functions that are
 * printed for its input and for its state (tinyet_gates_dsp.h). */
#ifndef TINYET_GRU_DSP_H
#define TINYET_GRU_DSP_H

#include "tinyet_gates_dsp.h"
#include "tinyet_gru.h"

#ifdef __cplusplus
extern "C" {
#endif

/* scratch: that of tinyet_gru_s8, then int16 for each value of the input or of the state, whichever has more, rounded up to
 * fours, and a word. */
void tinyet_gru_s8_dsp(const int8_t *x, const int8_t *h, int8_t *y, int8_t *h_n,
                       void *scratch, const tinyet_gru_s8_params *params, tinyet_gates_function_dsp of_x,
                       tinyet_gates_function_dsp of_h);

#ifdef __cplusplus
}
#endif

#endif
