/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_cast.h"

void tinyet_cast_u8_f32(const uint8_t *input, float *output, const tinyet_cast_params *params) {
  const uint8_t *const end = input + params->count;
  while (input != end) {
    *output++ = (float)*input++;
  }
}
