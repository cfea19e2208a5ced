/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_gates.h"
#include "tinyet_gru.h"

#define KERNEL tinyet_gru_s8
#define SUMS(values, part, gates, units, sums, rest) tinyet_gate_sums(values, part, gates, units, sums)
#include "tinyet_gru_s8_body.h"
