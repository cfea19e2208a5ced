/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_lstm.h"

#define KERNEL tinyet_lstm_clipped_f32
#define PARAMS tinyet_lstm_clipped_f32_params
#define LAYER &params->layer
#define CELL(value) tinyet_clamp_f32(value, -params->cell_clip, params->cell_clip)
#define PUT(hidden, out) memcpy(out, hidden, (size_t)s->outputs * sizeof *out)
#include "tinyet_lstm_f32_body.h"
