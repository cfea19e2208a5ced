/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_signal.h"

void tinyet_signal_filter_bank(const uint32_t *input, uint32_t *output,
                               const tinyet_signal_filter_bank_params *params) {
  uint64_t carried = 0;
  for (int32_t band = 0; band < params->bands; band++) {
    uint64_t sum = carried;
    carried = 0;
    const TINYET_ROM int16_t *weights = params->weights + params->weight_starts[band];
    const TINYET_ROM int16_t *unweights = params->unweights + params->weight_starts[band];
    const uint32_t *energies = input + params->frequency_starts[band];
    for (int32_t i = params->widths[band]; i > 0; i--) {
      const uint64_t energy = *energies++;
      const int64_t weight = *weights++, unweight = *unweights++;
      sum += energy * (uint64_t)weight;
      carried += energy * (uint64_t)unweight;
    }
    if (band > 0) {
      *output++ = (uint32_t)sum;
      *output++ = (uint32_t)(sum >> 32);
    }
  }
}
