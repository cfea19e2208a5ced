/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_signal.h"

void tinyet_signal_energy(const int16_t *input, uint32_t *output, const tinyet_signal_energy_params *params) {
  for (int32_t i = 0; i < params->count; i++) {
    const int32_t real = input[2 * i], imaginary = input[2 * i + 1];
    const int has_energy = i >= params->start && i < params->end;
    output[i] = has_energy ? (uint32_t)(real * real) + (uint32_t)(imaginary * imaginary) : 0u;
  }
}
