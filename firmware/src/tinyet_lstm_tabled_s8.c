/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_lstm_hidden.h"
#include "tinyet_tabled_gates.h"

#define KERNEL tinyet_lstm_tabled_s8
#define PARAMS tinyet_lstm_tabled_s8_params
#define LAYER params->layer
#define VALUE int8_t
#define SUMS(values, part, units, sums, rest) tinyet_tabled_sums_s8(values, part, 4, units, sums)
#define SIGMOID(values, count) tinyet_tabled_sigmoids(params->table, values, count)
#define TANH(values, count, bits) tinyet_tabled_tanhs(params->table, values, count, bits)
#define TWICE 1
#define HIDDEN(gate, cells, out, units) tinyet_lstm_hidden(gate, cells, out, units, &params->layer)
#include "tinyet_lstm_clipped_body.h"
