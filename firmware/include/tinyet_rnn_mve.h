/* SPDX-License-Identifier: Apache-2.0 */
/* Plain recurrent units for cores with Helium: weights in eights of rows, in int8 as tinyet_gate_sums_mve.h has
 * them. */
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

/* In int16, with weights, multipliers and forms as tinyet_gate_sums_s16_mve.h has them. */
typedef struct {
  tinyet_recurrent_shape shape;
  tinyet_gate_part_s8 x, h;
  int32_t relu;
  int32_t multiplier, form;
  const int32_t *pieces; /* [512], as tinyet_gates_pwl.h has them */
} tinyet_rnn_s16_mve_params;

/* scratch: a sum of int16, units rounded up to fours; then int16 for each value of the input or of the state,
 * whichever has more, rounded up to eights. */
void tinyet_rnn_s16_mve(const int16_t *x, const int16_t *h, int16_t *y, int16_t *h_n, void *scratch,
                        const tinyet_rnn_s16_mve_params *params);

#ifdef __cplusplus
}
#endif

#endif
