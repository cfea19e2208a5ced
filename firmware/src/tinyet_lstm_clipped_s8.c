/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_lstm_hidden.h"

#define KERNEL tinyet_lstm_clipped_s8
#define PARAMS tinyet_lstm_clipped_s8_params
#define LAYER params->layer
#define VALUE int8_t
#define SUMS(values, part, units, sums, rest) tinyet_gate_sums(values, part, 4, units, sums)
#define SIGMOID(values, count) tinyet_gate_sigmoid(values, count)
#define TANH(values, count, bits) tinyet_gate_tanh(values, count, bits)
#define TWICE 0
#define HIDDEN(gate, cells, out, units) tinyet_lstm_hidden(gate, cells, out, units, &params->layer)
#include "tinyet_lstm_clipped_body.h"
