/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_gate_sums_s16_mve.h"
#include "tinyet_gates_pwl.h"
#include "tinyet_lstm_hidden.h"
#include "tinyet_lstm_mve.h"

#define KERNEL tinyet_lstm_s16_mve
#define PARAMS tinyet_lstm_s16_mve_params
#define LAYER (*params)
#define VALUE int16_t
#define SUMS(which, values, part, units, sums, rest) tinyet_lut_sums_s16_mve(values, part, 4, units, sums, rest)
#define SIGMOID(values, count) tinyet_pwl_sigmoids(params->pieces, values, count)
#define TANH(values, count, bits) tinyet_pwl_tanhs(params->pieces, values, ((count) + 3) & ~INT32_C(3), bits)
#define TWICE 1
#define HIDDEN(gate, cells, out, units) tinyet_lstm_hidden_s16(gate, cells, out, units, params->multiplier, params->form)
#include "tinyet_lstm_cell_clip_body.h"
