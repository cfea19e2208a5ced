/* SPDX-License-Identifier: Apache-2.0 */
/* Plain recurrent units in int8. The file that includes this has defined
 *
 *   KERNEL   the function's name
 *   SUMS(which, values, part, gates, units, sums, rest)   adds the sums of a part, x or h; rest: scratch memory behind the sums
 *   FUNCTIONS   more parameters of the function; nothing where it is not defined */
#ifndef TINYET_RNN_S8_BODY_H
#define TINYET_RNN_S8_BODY_H

#include "tinyet_gates.h"
#include "tinyet_rnn.h"

#if !defined(FUNCTIONS)
#define FUNCTIONS
#endif

void KERNEL(const int8_t *x, const int8_t *h, int8_t *y, int8_t *h_n, void *scratch,
                   const tinyet_rnn_s8_params *params FUNCTIONS) {
  const tinyet_recurrent_shape *const s = &params->shape;
  const int32_t units = s->units, rows = (units + 3) & ~INT32_C(3);
  int16_t *const sums = (int16_t *)scratch;
  for (int32_t n = 0; n < s->batch; n++) {
    const int8_t *in = x + s->x_first, *state = h;
    int8_t *out = y + s->y_first;
    for (int32_t t = s->steps; t != 0; t--) {
      memset(sums, 0, (size_t)rows * sizeof *sums);
      SUMS(x, in, &params->x, 1, rows, sums, sums + rows);
      SUMS(h, state, &params->h, 1, rows, sums, sums + rows);
      if (params->relu == 0) {
        tinyet_gate_tanh(sums, units, 3);
      }
      for (int32_t i = 0; i < units; i++) {
        const int32_t result = params->relu != 0 && sums[i] < 0 ? 0 : sums[i];
        const int32_t value = tinyet_requantize_form(result, params->multiplier, params->form, params->zero_point);
        out[i] = (int8_t)tinyet_clamp(value, INT8_MIN, INT8_MAX);
      }
      state = out;
      in += s->x_step;
      out += s->y_step;
    }
    if (y != h_n) {
      memcpy(h_n, state, (size_t)units);
    }
    x += s->steps * s->inputs;
    h += units;
    y += s->y_batch;
    h_n += units;
  }
}

#endif
