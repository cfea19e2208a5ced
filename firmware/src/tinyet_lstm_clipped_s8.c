/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_gates.h"

#define KERNEL tinyet_lstm_clipped_s8
#define PARAMS tinyet_lstm_clipped_s8_params
#define LAYER params->layer
#define VALUE int8_t
#define LOW INT8_MIN
#define HIGH INT8_MAX
#define ZERO_POINT params->layer.zero_point
#define SUMS(values, part, units, sums) tinyet_gate_sums(values, part, 4, units, sums)
#define SIGMOID(values, count) tinyet_gate_sigmoid(values, count)
#define TANH(values, count, bits) tinyet_gate_tanh(values, count, bits)
#define SHORTENED(product, bits) tinyet_round_shift(product, bits)
#include "tinyet_lstm_clipped_body.h"
