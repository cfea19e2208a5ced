/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_lut.h"

void tinyet_lut_s8(const int8_t *input, int8_t *output, const tinyet_lut_s8_params *params) {
  const TINYET_ROM int8_t *const table = params->table;
  const int8_t *const end = output + params->count;
  const int8_t *const end4 = output + (params->count & ~3);
  /* Four loads before four stores, because the compiler must assume that a store changes the table or the input. */
  while (output != end4) {
    const int8_t a = table[(uint8_t)input[0]], b = table[(uint8_t)input[1]];
    const int8_t c = table[(uint8_t)input[2]], d = table[(uint8_t)input[3]];
    output[0] = a, output[1] = b, output[2] = c, output[3] = d;
    input += 4, output += 4;
  }
  while (output != end) {
    *output++ = table[(uint8_t)*input++];
  }
}
