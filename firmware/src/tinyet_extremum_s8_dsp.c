/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_int8x4_dsp.h"

#define DEFINE(NAME, QUAD, BEATS)                                                                               \
  void tinyet_##NAME##_s8_same_dsp(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_elementwise_shape_dsp *walk) { \
    const int8_t *const end = output + walk->row, *const end4 = output + (walk->row & ~3);              \
    while (output != end4) {                                                                                    \
      tinyet_store_dsp(output, QUAD(tinyet_load_dsp(a), tinyet_load_dsp(b)));                                   \
      a += 4, b += 4, output += 4;                                                                              \
    }                                                                                                           \
    for (; output != end; a++, b++) {                                                                           \
      *output++ = *a BEATS *b ? *a : *b;                                                                       \
    }                                                                                                           \
  }

DEFINE(maximum, tinyet_greater_bytes_dsp, >)
DEFINE(minimum, tinyet_lesser_bytes_dsp, <)
