/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_dsp_gates.h"
#include "tinyet_dsp_gru.h"

#define KERNEL tinyet_dsp_gru_s8
#define SUMS(values, part, gates, units, sums, rest) \
  tinyet_dsp_gate_sums(values, part, gates, units, sums, (uint32_t *)(void *)(rest))
#include "tinyet_gru_s8_body.h"
