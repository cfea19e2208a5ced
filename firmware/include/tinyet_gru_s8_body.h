/* SPDX-License-Identifier: Apache-2.0 */
/* Gated recurrent units in int8. The file that includes this has defined
 *
 *   KERNEL   the function's name
 *   SUMS(which, values, part, gates, units, sums, rest)   adds the sums of a part, x or h; rest: scratch memory behind the sums
 *   FUNCTIONS   more parameters of the function; nothing where it is not defined */
#ifndef TINYET_GRU_S8_BODY_H
#define TINYET_GRU_S8_BODY_H

#include "tinyet_gates.h"
#include "tinyet_gru.h"

/* Adds the last sum, times the reset gate (the second), to the first. */
static inline void tinyet_gru_candidates(int16_t *sums, int32_t rows, int32_t units) {
#if TINYET_GATE_MVE
  for (int32_t i = 0; i < units; i += 8) {
    const mve_pred16_t there = vctp16q((uint32_t)(units - i));
    const int16x8_t reset = vldrhq_z_s16(sums + rows + i, there), of_h = vldrhq_z_s16(sums + 3 * rows + i, there);
    const int16x8_t of_x = vldrhq_z_s16(sums + i, there);
    const int32x4_t even = vaddq_s32(vmovlbq_s16(of_x), tinyet_rounded_mve(vmullbq_int_s16(reset, of_h), 15));
    const int32x4_t odd = vaddq_s32(vmovltq_s16(of_x), tinyet_rounded_mve(vmulltq_int_s16(reset, of_h), 15));
    vstrhq_p_s16(sums + i, tinyet_joined_mve(even, odd), there);
  }
#elif defined(__AVR__)
  tinyet_gate_add_products(sums, sums + rows, sums + 3 * rows, TINYET_EXTENT(units));
#else
  for (int32_t i = 0; i < units; i++) {
    int16_t *const gate = sums + i;
    const int32_t inner = tinyet_gate_product(gate[rows], gate[3 * rows]);
    gate[0] = (int16_t)tinyet_gate_saturate(gate[0] + inner);
  }
#endif
}

/* The state behind a step: so much of the one before as the update gate says, and of the candidate the rest. */
static inline void tinyet_gru_state(const int16_t *candidates, const int16_t *updates, const int8_t *state, int8_t *out,
                                    int32_t units, const tinyet_gru_s8_params *params) {
  const int32_t zero_point = params->zero_point;
  int32_t i = 0;
#if TINYET_GATE_MVE
  for (; params->form >= 0 && i < units; i += 8) {
    const mve_pred16_t there = vctp16q((uint32_t)(units - i));
    const int16x8_t fresh = vldrhq_z_s16(candidates + i, there), update = vldrhq_z_s16(updates + i, there);
    const int16x8_t before = vsubq_n_s16(vldrbq_z_s16(state + i, there), (int16_t)zero_point);
    int32x4_t even = vsubq_s32(vshllbq_n_s16(fresh, 15), vmullbq_int_s16(update, fresh));
    int32x4_t odd = vsubq_s32(vshlltq_n_s16(fresh, 15), vmulltq_int_s16(update, fresh));
    even = tinyet_requantize_mve(even, params->multiplier, params->form, 0);
    odd = tinyet_requantize_mve(odd, params->multiplier, params->form, 0);
    even = vrshrq_n_s32(vaddq_s32(even, vmullbq_int_s16(update, before)), 15);
    odd = vrshrq_n_s32(vaddq_s32(odd, vmulltq_int_s16(update, before)), 15);
    tinyet_store_bytes_mve(out + i, vaddq_n_s32(even, zero_point), vaddq_n_s32(odd, zero_point), there);
  }
#elif defined(__AVR__)
  if (params->form >= 0) {
    i = units;
    tinyet_gate_mixed(candidates, updates, state, out, TINYET_EXTENT(units), params->multiplier, params->form,
                      (int16_t)zero_point);
  }
#else
  for (; params->form >= 0 && i < units; i++) {
    const int32_t fresh = (32768 - updates[i]) * candidates[i], kept = updates[i] * (state[i] - zero_point);
    const int32_t new_part = tinyet_gate_requantize(fresh, params->multiplier, params->form);
    out[i] = tinyet_gate_byte(((new_part + kept + (INT32_C(1) << 14)) >> 15) + zero_point);
  }
#endif
  for (; i < units; i++) {
    const int32_t fresh = (32768 - updates[i]) * candidates[i], kept = updates[i] * (state[i] - zero_point);
    const int32_t new_part = tinyet_requantize_any(fresh, params->multiplier, params->form + 31);
    out[i] = tinyet_gate_byte(((new_part + kept + (INT32_C(1) << 14)) >> 15) + zero_point);
  }
}

#define PARAMS tinyet_gru_s8_params
#define VALUE int8_t
#define STEP(in, state, out)                                           \
  tinyet_gate_clear(sums, 4 * rows);                                   \
  SUMS(x, in, &params->x, 3, rows, sums, sums + 4 * rows);             \
  SUMS(h, state, &params->h, 3, rows, sums + rows, sums + 4 * rows);   \
  tinyet_gate_sigmoid(sums + rows, 2 * rows);                          \
  tinyet_gru_candidates(sums, rows, units);                            \
  tinyet_gate_tanh(sums, units, 3);                                    \
  tinyet_gru_state(sums, sums + 2 * rows, state, out, units, params)
#include "tinyet_recurrent_steps_body.h"

#endif
