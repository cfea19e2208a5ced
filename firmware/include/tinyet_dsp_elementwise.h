/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised int8 arithmetic of two operands of one shape for cores with DSP instructions: see tinyet_dsp.h. */
#ifndef TINYET_DSP_ELEMENTWISE_H
#define TINYET_DSP_ELEMENTWISE_H

#include "tinyet_dsp.h"

/* clamp((offset + first * a[i] + second * b[i]) >> shift); no step leaves int32. The output may be one of the inputs. */
TINYET_DSP_INLINE void tinyet_dsp_affine(const int8_t *a, const int8_t *b, int8_t *output, const int32_t count,
                                         const int32_t first, const int32_t second, const int32_t offset,
                                         const int32_t shift, const int32_t low, const int32_t high) {
  int32_t u = first, v = second, w = offset;
  /* Products by unknown factors are one instruction; by known ones they may become many. */
  TINYET_DSP_UNKNOWN(u);
  TINYET_DSP_UNKNOWN(v);
  TINYET_DSP_UNKNOWN(w);
#pragma GCC unroll 8
  for (int32_t i = 0; i < count; i++) {
    int32_t value = tinyet_dsp_saturate_shifted(w + u * a[i] + v * b[i], shift);
    if (low > -128 || high < 127) {
      value = tinyet_clamp(value, low, high);
    }
    output[i] = (int8_t)value;
  }
}

#endif
