/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_mve_lstm.h"
#include "tinyet_mve_sums.h"

#define KERNEL tinyet_mve_lstm_s8
#define PARAMS tinyet_lstm_s8_params
#define LAYER params
#define HIDDEN out
#define PROJECT ((void)0)
#define SUMS(values, part, gates, units, sums, rest) \
  tinyet_mve_gate_sums(values, part, gates, units, sums, (int8_t *)(rest))
#include "tinyet_lstm_s8_body.h"
