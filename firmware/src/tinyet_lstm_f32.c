/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_lstm.h"

#define KERNEL tinyet_lstm_f32
#define PARAMS tinyet_lstm_f32_params
#define LAYER params
#define CELL(value) value
#define PUT(hidden, out) memcpy(out, hidden, (size_t)s->outputs * sizeof *out)
#include "tinyet_lstm_f32_body.h"
