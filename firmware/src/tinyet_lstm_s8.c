/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_lstm.h"

#define KERNEL tinyet_lstm_s8
#define PARAMS tinyet_lstm_s8_params
#define LAYER params
#define PUT(hidden, out) memcpy(out, hidden, state_bytes)
#include "tinyet_lstm_s8_body.h"
