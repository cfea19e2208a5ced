/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_cast.h"

void tinyet_cast_s32_s8(const int32_t *input, int8_t *output, const tinyet_cast_params *params) {
  const int32_t *const end = input + params->count;
  while (input != end) {
    *output++ = (int8_t)*input++;
  }
}
