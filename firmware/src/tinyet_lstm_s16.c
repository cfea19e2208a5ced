/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_gates_lut.h"
#include "tinyet_lstm.h"
#include "tinyet_lstm_hidden.h"

#define KERNEL tinyet_lstm_s16
#define PARAMS tinyet_lstm_s16_params
#define LAYER (*params)
#define VALUE int16_t
#define SUMS(which, values, part, units, sums, rest) tinyet_lut_sums_s16(values, part, 4, units, sums)
#define SIGMOID(values, count) tinyet_lut_sigmoids(params->table, values, count)
#define TANH(values, count, bits) tinyet_lut_tanhs(params->table, values, count, bits)
#define TWICE 1
#define HIDDEN(gate, cells, out, units) tinyet_lstm_hidden_s16(gate, cells, out, units, params->multiplier, params->form)
#include "tinyet_lstm_cell_clip_body.h"
