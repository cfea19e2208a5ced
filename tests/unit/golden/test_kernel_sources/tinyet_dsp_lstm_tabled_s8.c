/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_dsp_gates.h"
#include "tinyet_dsp_lstm.h"
#include "tinyet_lstm_hidden.h"
#include "tinyet_pieced_gates.h"

#define KERNEL tinyet_dsp_lstm_tabled_s8
#define PARAMS tinyet_lstm_pieced_s8_params
#define LAYER params->layer
#define VALUE int8_t
#define SUMS(values, part, units, sums, rest) \
  tinyet_dsp_tabled_sums(values, part, 4, units, sums, (uint32_t *)(void *)(rest))
#define SIGMOID(values, count) tinyet_pieced_sigmoids(params->pieces, values, count)
#define TANH(values, count, bits) tinyet_pieced_tanhs(params->pieces, values, ((count) + 3) & ~INT32_C(3), bits)
#define TWICE 1
#define HIDDEN(gate, cells, out, units) tinyet_lstm_hidden(gate, cells, out, units, &params->layer)
#include "tinyet_lstm_clipped_body.h"
