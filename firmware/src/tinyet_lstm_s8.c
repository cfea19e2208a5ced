/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_lstm.h"

#define KERNEL tinyet_lstm_s8
#define PARAMS tinyet_lstm_s8_params
#define LAYER params
#define HIDDEN out
#define PROJECT ((void)0)
#define SUMS(values, part, gates, units, sums, rest) tinyet_gate_sums(values, part, gates, units, sums)
#include "tinyet_lstm_s8_body.h"
