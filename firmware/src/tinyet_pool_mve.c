/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_pool_mve.h"

void tinyet_max_windows_mve_twin(const int8_t *from, int8_t *to, int32_t count, const tinyet_windows_mve *s) {
  for (; count != 0; count--, from += s->step, to += s->out_step) {
    for (int32_t c = 0; c < s->channels; c++) {
      int8_t most = INT8_MIN;
      for (int32_t t = 0; t < s->rows * s->columns; t++) {
        const int8_t tap = from[t / s->columns * s->row + t % s->columns * s->column + c];
        most = tap > most ? tap : most;
      }
      to[c] = most;
    }
  }
}

void tinyet_avg_windows_mve_twin(const int8_t *from, int8_t *to, int32_t count, const tinyet_windows_mve *s) {
  for (; count != 0; count--, from += s->step, to += s->out_step) {
    for (int32_t c = 0; c < s->channels; c++) {
      int32_t sum = 0;
      for (int32_t t = 0; t < s->rows * s->columns; t++) {
        sum += from[t / s->columns * s->row + t % s->columns * s->column + c];
      }
      const uint32_t all = (uint32_t)(sum + s->offset - (s->even != 0 && sum < 0));
      to[c] = (int8_t)((int32_t)(all * (uint32_t)s->multiplier >> (16 + s->shift)) - s->bias);
    }
  }
}
