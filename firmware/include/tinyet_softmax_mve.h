/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax for cores with Helium: see tinyet_mve.h. */
#ifndef TINYET_SOFTMAX_MVE_H
#define TINYET_SOFTMAX_MVE_H

#include "tinyet_mve.h"
#include "tinyet_softmax.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tinyet_softmax_s8 of rows: inner is 1. */
void tinyet_softmax_s8_mve(const int8_t *input, int8_t *output, const tinyet_softmax_s8_params *params);

/* tinyet_softmax_scaled_s8 of rows, likewise. */
void tinyet_softmax_scaled_s8_mve(const int8_t *input, int8_t *output, const tinyet_softmax_scaled_s8_params *params);

/* tinyet_log_softmax_s8 of rows, likewise. */
void tinyet_log_softmax_s8_mve(const int8_t *input, int8_t *output, const tinyet_log_softmax_s8_params *params);

/* tinyet_log_softmax_scaled_s8 of rows, likewise. shift: 0 and more; out_shift: -1 ... -31. */
void tinyet_log_softmax_scaled_s8_mve(const int8_t *input, int8_t *output, const tinyet_log_softmax_scaled_s8_params *params);

/* tinyet_softmax_s16 of rows, likewise. */
void tinyet_softmax_s16_mve(const int16_t *input, int16_t *output, const tinyet_softmax_s16_params *params);

/* tinyet_softmax_scaled_s16 of rows, likewise. out_shift: 32 and more, of output scales from 2^-28 on. */
void tinyet_softmax_scaled_s16_mve(const int16_t *input, int16_t *output, const tinyet_softmax_scaled_s16_params *params);

#ifdef __cplusplus
}
#endif

#endif
