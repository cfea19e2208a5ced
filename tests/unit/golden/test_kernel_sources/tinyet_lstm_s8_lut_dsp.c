/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_gate_sums_dsp.h"
#include "tinyet_lstm_dsp.h"
#include "tinyet_lstm_hidden.h"
#include "tinyet_gates_pwl.h"

#define KERNEL tinyet_lstm_s8_lut_dsp
#define PARAMS tinyet_lstm_s8_pwl_params
#define LAYER params->layer
#define VALUE int8_t
#define SUMS(which, values, part, units, sums, rest) \
  tinyet_gate_sums_dsp(values, part, 4, units, sums, (uint32_t *)(void *)(rest), of_##which)
#define FUNCTIONS , tinyet_gates_function_dsp of_x, tinyet_gates_function_dsp of_h
#define SIGMOID(values, count) tinyet_pwl_sigmoids(params->pieces, values, count)
#define TANH(values, count, bits) tinyet_pwl_tanhs(params->pieces, values, ((count) + 3) & ~INT32_C(3), bits)
#define TWICE 1
#define HIDDEN(gate, cells, out, units) tinyet_lstm_hidden(gate, cells, out, units, &params->layer)
#include "tinyet_lstm_cell_clip_body.h"
