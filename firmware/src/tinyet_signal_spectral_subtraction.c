/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_signal.h"

void tinyet_signal_spectral_subtraction(const uint32_t *input, const uint32_t *before, uint32_t *output,
                                        uint32_t *noise, const tinyet_signal_spectral_subtraction_params *params) {
  const int32_t up = params->smoothing_bits, down = params->bits;
  for (int32_t i = 0; i < params->count; i++) {
    const uint32_t value = input[i], signal = value << up;
    const uint64_t old_part = (uint64_t)before[i] * (uint32_t)params->one_minus_smoothing[i & 1];
    const uint64_t new_part = (uint64_t)signal * (uint32_t)params->smoothing[i & 1];
    const uint32_t average = (uint32_t)((new_part + old_part) >> down);
    const uint32_t estimate = average > signal ? signal : average;
    const uint32_t least = (uint32_t)(((uint64_t)value * (uint32_t)params->min_signal_remaining) >> down);
    const uint32_t rest = (signal - estimate) >> up;
    output[i] = rest > least ? rest : least;
    noise[i] = params->clamping != 0 ? estimate : average;
  }
}
