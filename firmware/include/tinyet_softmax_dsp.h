/* SPDX-License-Identifier: Apache-2.0 */
/* int8 softmax for cores with DSP instructions: see tinyet_dsp.h. */
#ifndef TINYET_SOFTMAX_DSP_H
#define TINYET_SOFTMAX_DSP_H

#include "tinyet_softmax.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tinyet_softmax_s8 of rows: inner is 1, depth at least 4. */
void tinyet_softmax_s8_dsp(const int8_t *input, int8_t *output, const tinyet_softmax_s8_params *params);

#ifdef __cplusplus
}
#endif

#endif
