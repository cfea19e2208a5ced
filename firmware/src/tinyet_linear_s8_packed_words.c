/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_packed_words.h"

void tinyet_linear_s8_packed_words(const int8_t *input, int8_t *output, void *scratch,
                                   const tinyet_linear_s8_packed_words_params *params) {
  for (int32_t row = 0; row < params->rows; row++) {
    tinyet_packed_inputs((uint8_t *)scratch, input, params->depth);
    tinyet_packed_pixel((const uint8_t *)scratch, output, &params->words);
    input += params->depth;
    output += params->words.out_c;
  }
}
