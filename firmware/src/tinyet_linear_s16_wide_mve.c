/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_wide_sums_mve.h"

void tinyet_linear_s16_wide_mve(const int16_t *input, int16_t *output, const tinyet_linear_s16_wide_mve_params *params) {
  const tinyet_wide_outputs_mve *const outputs = &params->outputs;
  for (int32_t n = params->rows; n != 0; n--, input += outputs->depth, output += outputs->count) {
    tinyet_wide_row_mve(input, output, outputs);
  }
}
