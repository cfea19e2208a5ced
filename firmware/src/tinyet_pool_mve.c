/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_pool_mve.h"

/* Steps are bytes, and whole values. */
#define TINYET_MVE_TAP(TYPE) \
  from[(t / s->columns * s->row + t % s->columns * s->column) / (int32_t)sizeof(TYPE) + c]
#define TINYET_MVE_MAXIMA(NAME, TYPE, LOWEST)                                                       \
  void NAME(const void *input, void *output, int32_t count, const tinyet_windows_mve *s) {          \
    const TYPE *from = (const TYPE *)input;                                                         \
    TYPE *to = (TYPE *)output;                                                                      \
    for (; count != 0; count--) {                                                                   \
      for (int32_t c = 0; c < s->channels; c++) {                                                   \
        TYPE most = LOWEST;                                                                         \
        for (int32_t t = 0; t < s->rows * s->columns; t++) {                                        \
          const TYPE tap = TINYET_MVE_TAP(TYPE);                                                    \
          most = tap > most ? tap : most;                                                           \
        }                                                                                           \
        to[c] = most;                                                                               \
      }                                                                                             \
      from += s->step / (int32_t)sizeof(TYPE), to += s->out_step / (int32_t)sizeof(TYPE);           \
    }                                                                                               \
  }
TINYET_MVE_MAXIMA(tinyet_max_windows_s8_mve_reference, int8_t, INT8_MIN)
TINYET_MVE_MAXIMA(tinyet_max_windows_s16_mve_reference, int16_t, INT16_MIN)

#define TINYET_MVE_AVERAGES(NAME, TYPE, BITS)                                                       \
  void NAME(const void *input, void *output, int32_t count, const tinyet_windows_mve *s) {          \
    const TYPE *from = (const TYPE *)input;                                                         \
    TYPE *to = (TYPE *)output;                                                                      \
    for (; count != 0; count--) {                                                                   \
      for (int32_t c = 0; c < s->channels; c++) {                                                   \
        int32_t sum = 0;                                                                            \
        for (int32_t t = 0; t < s->rows * s->columns; t++) {                                        \
          sum += TINYET_MVE_TAP(TYPE);                                                              \
        }                                                                                           \
        const int64_t all = (int64_t)sum + s->offset - (s->even != 0 && sum + s->start < 0);        \
        to[c] = (TYPE)((int32_t)((uint64_t)all * s->multiplier >> (BITS + s->shift)) - s->bias);    \
      }                                                                                             \
      from += s->step / (int32_t)sizeof(TYPE), to += s->out_step / (int32_t)sizeof(TYPE);           \
    }                                                                                               \
  }
TINYET_MVE_AVERAGES(tinyet_avg_windows_s8_mve_reference, int8_t, 16)
TINYET_MVE_AVERAGES(tinyet_avg_windows_s16_mve_reference, int16_t, 32)
