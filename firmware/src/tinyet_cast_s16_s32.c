/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_cast.h"

void tinyet_cast_s16_s32(const int16_t *input, int32_t *output, const tinyet_cast_params *params) {
  const int16_t *const end = input + params->count;
  while (input != end) {
    *output++ = *input++;
  }
}
