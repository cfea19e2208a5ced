/* SPDX-License-Identifier: Apache-2.0 */
/* Plain recurrent units for cores with Helium: weights in eights of rows, as tinyet_gate_sums_mve.h has them. */
#ifndef TINYET_RNN_MVE_H
#define TINYET_RNN_MVE_H

#include "tinyet_rnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* scratch: that of tinyet_rnn_s8; then int8 for each value of the input or of the state, whichever has
 * more, rounded up to sixteens, and sixteen more. */
void tinyet_rnn_s8_mve(const int8_t *x, const int8_t *h, int8_t *y, int8_t *h_n,
                       void *scratch, const tinyet_rnn_s8_params *params);

#ifdef __cplusplus
}
#endif

#endif
