/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_int8x4_dsp.h"

void tinyet_clip_s8_dsp(const int8_t *input, int8_t *output, const tinyet_dsp_elementwise_shape *walk) {
  const int32_t low = walk->clamp_low, high = walk->clamp_high, count = walk->rows * walk->row;
  const uint32_t lows = tinyet_dsp_dup_int8x4(low), highs = tinyet_dsp_dup_int8x4(high);
  const int8_t *const end = output + count, *const end4 = output + (count & ~3);
  while (output != end4) {
    tinyet_dsp_store(output, tinyet_dsp_lesser_bytes(tinyet_dsp_greater_bytes(tinyet_dsp_load(input), lows), highs));
    input += 4, output += 4;
  }
  while (output != end) {
    *output++ = (int8_t)tinyet_clamp(*input++, low, high);
  }
}
