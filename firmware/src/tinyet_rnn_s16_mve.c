/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_gate_sums_s16_mve.h"
#include "tinyet_gates_lut.h"
#include "tinyet_gates_pwl.h"
#include "tinyet_rnn_mve.h"

/* Of sums, or of their tanh. */
static void state_of(const int16_t *values, int16_t *out, int32_t units, const tinyet_rnn_s16_mve_params *params) {
  int32_t i = 0;
#if TINYET_GATE_MVE
  for (; (params->relu != 0 || params->form >= 0) && i < units; i += 8) {
    const mve_pred16_t there = vctp16q((uint32_t)(units - i));
    const int16x8_t value = vldrhq_z_s16(values + i, there);
    int16x8_t state = vmaxq_s16(vqshlq_n_s16(value, 2), vdupq_n_s16(0));
    if (params->relu == 0) {
      const int32x4_t even = tinyet_requantize_mve(vshllbq_n_s16(value, 15), params->multiplier, params->form, 0);
      const int32x4_t odd = tinyet_requantize_mve(vshlltq_n_s16(value, 15), params->multiplier, params->form, 0);
      state = tinyet_joined_mve(even, odd);
    }
    vstrhq_p_s16(out + i, state, there);
  }
#endif
  for (; i < units; i++) {
    const int32_t whole = params->relu != 0
                              ? tinyet_clamp(4 * values[i], 0, INT16_MAX)
                              : tinyet_requantize_form(values[i] * INT32_C(32768), params->multiplier, params->form, 0);
    out[i] = (int16_t)tinyet_clamp(whole, INT16_MIN, INT16_MAX);
  }
}

#define KERNEL tinyet_rnn_s16_mve
#define PARAMS tinyet_rnn_s16_mve_params
#define VALUE int16_t
#define STEP(in, state, out)                                                \
  memset(sums, 0, (size_t)rows * sizeof *sums);                             \
  tinyet_lut_sums_s16_mve(in, &params->x, 1, rows, sums, sums + rows);      \
  tinyet_lut_sums_s16_mve(state, &params->h, 1, rows, sums, sums + rows);   \
  if (params->relu == 0) {                                                  \
    tinyet_pwl_tanhs(params->pieces, sums, rows, 3);                        \
  }                                                                         \
  state_of(sums, out, units, params)
#include "tinyet_recurrent_steps_body.h"
