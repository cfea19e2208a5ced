/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_dsp_gates.h"
#include "tinyet_dsp_lstm.h"

#define KERNEL tinyet_dsp_lstm_s8
#define PARAMS tinyet_lstm_s8_params
#define LAYER params
#define HIDDEN out
#define PROJECT ((void)0)
#define SUMS(values, part, gates, units, sums, rest) \
  tinyet_dsp_gate_sums(values, part, gates, units, sums, (uint32_t *)(void *)(rest))
#include "tinyet_lstm_s8_body.h"
