/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one integer by table for cores with Helium, whose entries are gathered: see tinyet_lut.h, tinyet_mve.h. The output
 * may be the input. */
#ifndef TINYET_LUT_MVE_H
#define TINYET_LUT_MVE_H

#include "tinyet_lut.h"
#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

void tinyet_lut_s8_mve(const int8_t *input, int8_t *output, const tinyet_lut_s8_params *params);
void tinyet_lut_s16_mve(const int16_t *input, int16_t *output, const tinyet_lut_s16_params *params);
void tinyet_sigmoid_s16_mve(const int16_t *input, int16_t *output, const tinyet_sigmoid_s16_params *params);
void tinyet_tanh_s16_mve(const int16_t *input, int16_t *output, const tinyet_sigmoid_s16_params *params);

#ifdef __cplusplus
}
#endif

#endif
