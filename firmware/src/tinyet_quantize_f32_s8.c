/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_quantize.h"

void tinyet_quantize_f32_s8(const float *input, int8_t *output, const tinyet_quantize_params *params) {
  const float scale = params->scale;
  const int32_t zero_point = params->zero_point;
  const int8_t *const end = output + params->count;
  while (output != end) {
    /* A division, not a multiplication by the reciprocal: that is off by one where the quotient is near a half. */
    const float x = *input++ / scale;
    int32_t q = 0;
    if (x >= 512.0f) {
      q = 512; /* saturates whatever the zero point; above it the conversion could overflow */
    } else if (x <= -512.0f) {
      q = -512;
    } else if (x == x) {
      q = (int32_t)x;
      const float rest = x - (float)q; /* exact, so that no sum rounds up just below a half */
      q += rest >= 0.5f ? 1 : (rest <= -0.5f ? -1 : 0);
    }
    *output++ = (int8_t)tinyet_clamp(q + zero_point, INT8_MIN, INT8_MAX);
  }
}
