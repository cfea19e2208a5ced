/* SPDX-License-Identifier: Apache-2.0 */
/* Between float and int8 or int16 for cores with Helium and an FPU, four values at a time: see tinyet_quantize.h, tinyet_mve.h. What
 * is done with floats the FPU does, lane by lane: Helium takes subnormal numbers for zero, and cannot divide. */
#ifndef TINYET_QUANTIZE_MVE_H
#define TINYET_QUANTIZE_MVE_H

#include "tinyet_mve.h"
#include "tinyet_quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

void tinyet_quantize_f32_s8_mve(const float *input, int8_t *output, const tinyet_quantize_params *params);
void tinyet_quantize_f32_s16_mve(const float *input, int16_t *output, const tinyet_quantize_params *params);
void tinyet_dequantize_s8_f32_mve(const int8_t *input, float *output, const tinyet_quantize_params *params);
void tinyet_dequantize_s16_f32_mve(const int16_t *input, float *output, const tinyet_quantize_params *params);

#ifdef __cplusplus
}
#endif

#endif
