/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_int8x4_dsp.h"

void tinyet_clip_s8_dsp(const int8_t *input, int8_t *output, const tinyet_elementwise_shape_dsp *walk) {
  const int32_t low = walk->clamp_low, high = walk->clamp_high, count = walk->rows * walk->row;
  const uint32_t lows = tinyet_dup_int8x4_dsp(low), highs = tinyet_dup_int8x4_dsp(high);
  const int8_t *const end = output + count, *const end4 = output + (count & ~3);
  while (output != end4) {
    tinyet_store_dsp(output, tinyet_lesser_bytes_dsp(tinyet_greater_bytes_dsp(tinyet_load_dsp(input), lows), highs));
    input += 4, output += 4;
  }
  while (output != end) {
    *output++ = (int8_t)tinyet_clamp(*input++, low, high);
  }
}
