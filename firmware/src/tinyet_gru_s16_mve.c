/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_gate_sums_s16_mve.h"
#include "tinyet_gates_lut.h"
#include "tinyet_gates_pwl.h"
#include "tinyet_gru_mve.h"

/* Adds the last sum, times the reset gate (the second), to the first. */
static void candidates_of(int16_t *sums, int32_t rows, int32_t units) {
#if TINYET_GATE_MVE
  for (int32_t i = 0; i < units; i += 8) {
    const mve_pred16_t there = vctp16q((uint32_t)(units - i));
    const int16x8_t reset = vldrhq_z_s16(sums + rows + i, there), of_h = vldrhq_z_s16(sums + 3 * rows + i, there);
    const int32x4_t even = tinyet_shortened_mve(vmullbq_int_s16(reset, of_h), 15);
    const int32x4_t odd = tinyet_shortened_mve(vmulltq_int_s16(reset, of_h), 15);
    vstrhq_p_s16(sums + i, vqaddq_s16(vldrhq_z_s16(sums + i, there), tinyet_joined_mve(even, odd)), there);
  }
#else
  for (int32_t i = 0; i < units; i++) {
    int16_t *const gate = sums + i;
    const int32_t own = tinyet_shortened((int32_t)gate[rows] * gate[3 * rows], 15);
    gate[0] = (int16_t)tinyet_clamp(gate[0] + own, INT16_MIN, INT16_MAX);
  }
#endif
}

/* The state behind a step: so much of the one before as the update gate says, and of the candidate the rest. */
static void state_of(const int16_t *candidates, const int16_t *updates, const int16_t *state, int16_t *out, int32_t units,
                     const tinyet_gru_s16_mve_params *params) {
  const int32_t multiplier = params->multiplier, form = params->form;
  int32_t i = 0;
#if TINYET_GATE_MVE
  for (; form >= 0 && i < units; i += 8) {
    const mve_pred16_t there = vctp16q((uint32_t)(units - i));
    const int16x8_t fresh = vldrhq_z_s16(candidates + i, there), update = vldrhq_z_s16(updates + i, there);
    const int16x8_t before = vldrhq_z_s16(state + i, there);
    int32x4_t even = vsubq_s32(vshllbq_n_s16(fresh, 15), vmullbq_int_s16(update, fresh));
    int32x4_t odd = vsubq_s32(vshlltq_n_s16(fresh, 15), vmulltq_int_s16(update, fresh));
    even = tinyet_requantize_mve(even, multiplier, form, 0);
    odd = tinyet_requantize_mve(odd, multiplier, form, 0);
    const int32x4_t even_kept = tinyet_shortened_mve(vmullbq_int_s16(update, before), 15);
    const int32x4_t odd_kept = tinyet_shortened_mve(vmulltq_int_s16(update, before), 15);
    vstrhq_p_s16(out + i, vqaddq_s16(tinyet_joined_mve(even, odd), tinyet_joined_mve(even_kept, odd_kept)), there);
  }
#endif
  for (; i < units; i++) {
    const int32_t fresh = tinyet_requantize_form((32768 - updates[i]) * candidates[i], multiplier, form, 0);
    const int32_t value = tinyet_clamp(fresh, INT16_MIN, INT16_MAX) + tinyet_shortened((int32_t)updates[i] * state[i], 15);
    out[i] = (int16_t)tinyet_clamp(value, INT16_MIN, INT16_MAX);
  }
}

#define KERNEL tinyet_gru_s16_mve
#define PARAMS tinyet_gru_s16_mve_params
#define VALUE int16_t
#define STEP(in, state, out)                                                           \
  memset(sums, 0, (size_t)(4 * rows) * sizeof *sums);                                  \
  tinyet_lut_sums_s16_mve(in, &params->x, 3, rows, sums, sums + 4 * rows);             \
  tinyet_lut_sums_s16_mve(state, &params->h, 3, rows, sums + rows, sums + 4 * rows);   \
  tinyet_pwl_sigmoids(params->pieces, sums + rows, 2 * rows);                          \
  candidates_of(sums, rows, units);                                                    \
  tinyet_pwl_tanhs(params->pieces, sums, rows, 3);                                     \
  state_of(sums, sums + 2 * rows, state, out, units, params)
#include "tinyet_recurrent_steps_body.h"
