/* SPDX-License-Identifier: Apache-2.0 */
/* SVDF with an integer state. The file that includes this has defined
 *
 *   KERNEL     the function's name
 *   PARAMS     the type of its parameters
 *   STATE      the type of the state and of the weights of time
 *   LOW, HIGH  its bounds */
#ifndef TINYET_SVDF_S8_BODY_H
#define TINYET_SVDF_S8_BODY_H

#include "tinyet_dot_1x4.h"
#include "tinyet_svdf.h"

/* A frame's result in each filter, every `memory` elements from `newest` on. */
static void put_newest(const int8_t *x, STATE *newest, const PARAMS *params) {
  const tinyet_svdf_shape *const s = &params->shape;
  const int32_t blocks = s->inputs / 4, rest = s->inputs & 3;
  const TINYET_ROM int8_t *w = params->feature;
  for (int32_t f = 0; f < s->filters; f += 4) {
    const TINYET_ROM int32_t *const bias = params->feature_bias + f;
    int32_t rows[4] = {bias[0], bias[1], bias[2], bias[3]};
    w = tinyet_dot_1x4(x, w, blocks, rest, rows);
    w += rest != 0 ? 16 - rest : 0;
    const int32_t end = s->filters - f < 4 ? s->filters - f : 4;
    for (int32_t i = 0; i < end; i++) {
      const int32_t value = tinyet_requantize_form(rows[i], params->feature_multiplier, params->feature_form, 0);
      *newest = (STATE)(tinyet_clamp(value, LOW, HIGH) + params->state_zero_point);
      newest += s->memory;
    }
  }
}

void KERNEL(const int8_t *x, const STATE *state, int8_t *y, STATE *state_n, const PARAMS *params) {
  const tinyet_svdf_shape *const s = &params->shape;
  const int32_t filters = s->filters * s->memory, depth = s->rank * s->memory;
  /* All of it at once: what comes to a filter from the next one is what put_newest writes over. */
  memmove(state_n, state + 1, (size_t)(s->batch * filters - 1) * sizeof *state);
  for (int32_t n = 0; n < s->batch; n++) {
    put_newest(x, state_n + s->memory - 1, params);
    const TINYET_ROM STATE *w = params->time;
    for (int32_t unit = 0; unit < s->units; unit++) {
      uint32_t sum = (uint32_t)params->bias[unit];
      for (int32_t k = depth; k != 0; k--) {
        sum += (uint32_t)((int32_t)*w++ * *state_n++);
      }
      const int32_t value = tinyet_requantize((int32_t)sum, params->multiplier, params->shift);
      const int32_t low = params->clamp_low - params->zero_point, high = params->clamp_high - params->zero_point;
      *y++ = (int8_t)(tinyet_clamp(value, low, high) + params->zero_point);
    }
    x += s->inputs;
  }
}

#endif
