/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_lstm_projection.h"

#define KERNEL tinyet_lstm_projected_s8
#define PARAMS tinyet_lstm_projected_s8_params
#define LAYER &params->layer
#define HIDDEN (int8_t *)(gates + 4 * rows)
#define PROJECT tinyet_lstm_project(hidden, out, params)
#define SUMS(values, part, gates, units, sums, rest) tinyet_gate_sums(values, part, gates, units, sums)
#include "tinyet_lstm_s8_body.h"
