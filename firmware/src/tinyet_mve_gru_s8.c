/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_mve_gru.h"
#include "tinyet_mve_sums.h"

#define KERNEL tinyet_mve_gru_s8
#define SUMS(values, part, gates, units, sums, rest) \
  tinyet_mve_gate_sums(values, part, gates, units, sums, (int8_t *)(rest))
#include "tinyet_gru_s8_body.h"
