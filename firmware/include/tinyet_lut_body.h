/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of eight bits by table, for results of any type. The file that includes this has defined
 *
 *   KERNEL     the function's name
 *   PARAMS     the type of its parameters
 *   element    the type of the results
 *   source     the type of what is looked up, of eight bits */
#ifndef TINYET_LUT_BODY_H
#define TINYET_LUT_BODY_H

#include "tinyet_bytes.h"

void KERNEL(const source *input, element *output, const PARAMS *params) {
  const int32_t channels = params->channels, inner = params->inner;
  for (int32_t o = 0; o < params->outer; o++) {
    const TINYET_ROM element *table = params->table;
    const element *const row = output + channels;
    if (inner == 1) {
      /* Channels last: each byte has a table of its own, and a loop of one step would cost as much again. */
      do {
        *output++ = table[(uint8_t)*input++];
        table += 256;
      } while (output != row);
      continue;
    }
    for (int32_t c = 0; c < channels; c++) {
      const element *const end = output + inner;
      do {
        *output++ = table[(uint8_t)*input++];
      } while (output != end);
      table += 256;
    }
  }
}

#endif
