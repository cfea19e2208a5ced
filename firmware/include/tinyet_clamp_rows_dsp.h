/* SPDX-License-Identifier: Apache-2.0 */
/* What an element-by-element kernel does with bounds of its own: see tinyet_elementwise_dsp.h. */
#ifndef TINYET_CLAMP_ROWS_DSP_H
#define TINYET_CLAMP_ROWS_DSP_H

#include "tinyet_dsp.h"
#include "tinyet_elementwise_dsp.h"

/* All rows within the bounds, where these are not those of int8. */
TINYET_DSP_INLINE void tinyet_clamp_rows_dsp(int8_t *output, const tinyet_elementwise_shape_dsp *walk) {
  if (walk->clamp_low > INT8_MIN || walk->clamp_high < INT8_MAX) {
    tinyet_clip_s8_dsp(output, output, walk);
  }
}

#endif
