/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_gates_lut.h"
#include "tinyet_gru.h"

/* The state behind a step, of the sums of its gates. */
static inline void state_of(const int16_t *sums, int32_t rows, const int16_t *state, int16_t *out, int32_t units,
                            const tinyet_gru_s16_params *params) {
  for (int32_t i = 0; i < units; i++) {
    const int16_t *const gate = sums + i;
    const int32_t own = tinyet_shortened(tinyet_lut_sigmoid(params->table, gate[rows]) * gate[3 * rows], 15);
    const int32_t inner = tinyet_clamp(gate[0] + own, INT16_MIN, INT16_MAX);
    const int32_t candidate = tinyet_lut_tanh(params->table, inner, 3);
    const int32_t update = tinyet_lut_sigmoid(params->table, gate[2 * rows]);
    const int32_t fresh = tinyet_requantize_form((32768 - update) * candidate, params->multiplier, params->form, 0);
    const int32_t value = tinyet_clamp(fresh, INT16_MIN, INT16_MAX) + tinyet_shortened(update * state[i], 15);
    out[i] = (int16_t)tinyet_clamp(value, INT16_MIN, INT16_MAX);
  }
}

#define KERNEL tinyet_gru_s16
#define PARAMS tinyet_gru_s16_params
#define VALUE int16_t
#define STEP(in, state, out)                                      \
  memset(sums, 0, (size_t)(4 * rows) * sizeof *sums);             \
  tinyet_lut_sums_s16(in, &params->x, 3, rows, sums);             \
  tinyet_lut_sums_s16(state, &params->h, 3, rows, sums + rows);   \
  state_of(sums, rows, state, out, units, params)
#include "tinyet_recurrent_steps_body.h"
