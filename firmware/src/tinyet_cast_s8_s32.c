/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_cast.h"

void tinyet_cast_s8_s32(const int8_t *input, int32_t *output, const tinyet_cast_params *params) {
  const int8_t *const end = input + params->count;
  while (input != end) {
    *output++ = *input++;
  }
}
