/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_bytes.h"

void tinyet_cast_u8_f32(const uint8_t *input, float *output, const tinyet_bytes_params *params) {
  const float *const end = output + params->count;
  while (output != end) {
    *output++ = (float)*input++;
  }
}
