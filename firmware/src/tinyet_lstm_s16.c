/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_tabled_gates.h"

#define KERNEL tinyet_lstm_s16
#define PARAMS tinyet_lstm_s16_params
#define LAYER (*params)
#define VALUE int16_t
#define LOW INT16_MIN
#define HIGH INT16_MAX
#define ZERO_POINT 0
#define SUMS(values, part, units, sums) tinyet_tabled_sums_s16(values, part, 4, units, sums)
#define SIGMOID(values, count) tinyet_tabled_sigmoids(params->table, values, count)
#define TANH(values, count, bits) tinyet_tabled_tanhs(params->table, values, count, bits)
#define SHORTENED(product, bits) tinyet_shortened(product, bits)
#include "tinyet_lstm_clipped_body.h"
