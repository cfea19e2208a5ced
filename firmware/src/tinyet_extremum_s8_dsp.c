/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_int8x4_dsp.h"

#define DEFINE(NAME, QUAD, BEATS)                                                                               \
  void tinyet_##NAME##_s8_same_dsp(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_dsp_elementwise_shape *walk) { \
    const int8_t *const end = output + walk->row, *const end4 = output + (walk->row & ~3);              \
    while (output != end4) {                                                                                    \
      tinyet_dsp_store(output, QUAD(tinyet_dsp_load(a), tinyet_dsp_load(b)));                                   \
      a += 4, b += 4, output += 4;                                                                              \
    }                                                                                                           \
    for (; output != end; a++, b++) {                                                                           \
      *output++ = *a BEATS *b ? *a : *b;                                                                       \
    }                                                                                                           \
  }

DEFINE(maximum, tinyet_dsp_greater_bytes, >)
DEFINE(minimum, tinyet_dsp_lesser_bytes, <)
