/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers in integers that keep a state and no cell: each step of each sequence. The file that includes this has
 * defined
 *
 *   KERNEL      the function's name
 *   PARAMS      the type of its parameters
 *   VALUE       the type of input and state
 *   STEP(in, state, out)   statements that make the state behind a step, out, of its input and the state before it; they find
 *                          units, rows (units rounded up to fours), sums (the scratch memory) and params
 *   FUNCTIONS   more parameters of the function; nothing where it is not defined */
#ifndef TINYET_RECURRENT_STEPS_BODY_H
#define TINYET_RECURRENT_STEPS_BODY_H

#include "tinyet_recurrent.h"

#if !defined(FUNCTIONS)
#define FUNCTIONS
#endif

void KERNEL(const VALUE *x, const VALUE *h, VALUE *y, VALUE *h_n, void *scratch, const PARAMS *params FUNCTIONS) {
  const tinyet_recurrent_shape *const s = &params->shape;
  const int32_t units = s->units, rows = (units + 3) & ~INT32_C(3);
  int16_t *const sums = (int16_t *)scratch;
  for (int32_t n = 0; n < s->batch; n++) {
    const VALUE *in = x + s->x_first, *state = h;
    VALUE *out = y + s->y_first;
    for (int32_t t = s->steps; t != 0; t--) {
      STEP(in, state, out);
      state = out;
      in += s->x_step;
      out += s->y_step;
    }
    if (y != h_n) {
      memcpy(h_n, state, (size_t)units * sizeof *h_n);
    }
    x += s->steps * s->inputs;
    h += units;
    y += s->y_batch;
    h_n += units;
  }
}

#endif
