/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_lstm_hidden.h"
#include "tinyet_mve_lstm.h"
#include "tinyet_mve_sums.h"
#include "tinyet_pieced_gates.h"

#define KERNEL tinyet_mve_lstm_tabled_s8
#define PARAMS tinyet_lstm_pieced_s8_params
#define LAYER params->layer
#define VALUE int8_t
#define SUMS(values, part, units, sums, rest) \
  tinyet_mve_tabled_sums(values, part, 4, units, sums, (int8_t *)(rest))
#define SIGMOID(values, count) tinyet_pieced_sigmoids(params->pieces, values, count)
#define TANH(values, count, bits) tinyet_pieced_tanhs(params->pieces, values, ((count) + 3) & ~INT32_C(3), bits)
#define TWICE 1
#define HIDDEN(gate, cells, out, units) tinyet_lstm_hidden(gate, cells, out, units, &params->layer)
#include "tinyet_lstm_clipped_body.h"
