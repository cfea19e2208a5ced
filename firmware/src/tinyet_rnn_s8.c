/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_gates.h"
#include "tinyet_rnn.h"

#define KERNEL tinyet_rnn_s8
#define SUMS(values, part, gates, units, sums, rest) tinyet_gate_sums(values, part, gates, units, sums)
#include "tinyet_rnn_s8_body.h"
