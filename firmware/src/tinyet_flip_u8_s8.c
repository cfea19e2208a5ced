/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_bytes.h"

void tinyet_flip_u8_s8(const uint8_t *input, int8_t *output, const tinyet_bytes_params *params) {
  const int8_t *const end = output + params->count;
  const int8_t *const end4 = output + (params->count & ~3);
  while (output != end4) {
    uint32_t four;
    memcpy(&four, input, 4);
    four ^= UINT32_C(0x80808080);
    memcpy(output, &four, 4);
    input += 4, output += 4;
  }
  while (output != end) {
    *output++ = (int8_t)(*input++ - 128);
  }
}
