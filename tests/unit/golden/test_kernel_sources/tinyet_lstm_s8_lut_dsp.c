/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_gates_dsp.h"
#include "tinyet_lstm_dsp.h"
#include "tinyet_lstm_hidden.h"
#include "tinyet_gates_pwl.h"

#define KERNEL tinyet_lstm_s8_lut_dsp
#define PARAMS tinyet_lstm_s8_pwl_params
#define LAYER params->layer
#define VALUE int8_t
#define SUMS(values, part, units, sums, rest) \
  tinyet_lut_sums_dsp(values, part, 4, units, sums, (uint32_t *)(void *)(rest))
#define SIGMOID(values, count) tinyet_pwl_sigmoids(params->pieces, values, count)
#define TANH(values, count, bits) tinyet_pwl_tanhs(params->pieces, values, ((count) + 3) & ~INT32_C(3), bits)
#define TWICE 1
#define HIDDEN(gate, cells, out, units) tinyet_lstm_hidden(gate, cells, out, units, &params->layer)
#include "tinyet_lstm_cell_clip_body.h"
