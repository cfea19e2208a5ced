/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_dot_1x4_s16.h"
#include "tinyet_linear.h"

void tinyet_linear_s16(const int16_t *input, int16_t *output, const tinyet_linear_s16_params *params) {
  const int32_t depth = params->depth, count = params->out_count, block = params->block;
  const int32_t low = params->clamp_low, high = params->clamp_high;
  for (int32_t row = 0; row < params->rows; row++) {
    const TINYET_ROM int8_t *w = params->weights;
    for (int32_t n = 0; n < count; n += 4) {
      const TINYET_ROM int64_t *const bias = params->bias + n;
      int64_t total[4] = {bias[0], bias[1], bias[2], bias[3]};
      w = tinyet_totals_1x4_s16(input, w, depth, block, total);
      const int32_t end = count - n < 4 ? count - n : 4;
      for (int32_t i = 0; i < end; i++) {
        const int32_t value = tinyet_requantize_s64(total[i], params->multiplier[n + i], params->shift[n + i]);
        *output++ = (int16_t)tinyet_clamp(value, low, high);
      }
    }
    input += depth;
  }
}
