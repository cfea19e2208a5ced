/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_tabled_gates.h"

#define KERNEL tinyet_lstm_tabled_s8
#define PARAMS tinyet_lstm_tabled_s8_params
#define LAYER params->layer
#define VALUE int8_t
#define LOW INT8_MIN
#define HIGH INT8_MAX
#define ZERO_POINT params->layer.zero_point
#define SUMS(values, part, units, sums) tinyet_tabled_sums_s8(values, part, 4, units, sums)
#define SIGMOID(values, count) tinyet_tabled_sigmoids(params->table, values, count)
#define TANH(values, count, bits) tinyet_tabled_tanhs(params->table, values, count, bits)
#define SHORTENED(product, bits) tinyet_shortened(product, bits)
#include "tinyet_lstm_clipped_body.h"
