/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_gates_lut.h"
#include "tinyet_rnn.h"

static int32_t state_of(int32_t sum, const tinyet_rnn_s16_params *params) {
  if (params->relu != 0) {
    return tinyet_clamp(4 * sum, 0, INT16_MAX);
  }
  const int32_t result = tinyet_lut_tanh(params->table, sum, 3) * INT32_C(32768);
  return tinyet_clamp(tinyet_requantize_form(result, params->multiplier, params->form, 0), INT16_MIN, INT16_MAX);
}

#define KERNEL tinyet_rnn_s16
#define PARAMS tinyet_rnn_s16_params
#define VALUE int16_t
#define STEP(in, state, out)                               \
  memset(sums, 0, (size_t)rows * sizeof *sums);            \
  tinyet_lut_sums_s16(in, &params->x, 1, rows, sums);      \
  tinyet_lut_sums_s16(state, &params->h, 1, rows, sums);   \
  for (int32_t i = 0; i < units; i++) {                    \
    out[i] = (int16_t)state_of(sums[i], params);           \
  }
#include "tinyet_recurrent_steps_body.h"
