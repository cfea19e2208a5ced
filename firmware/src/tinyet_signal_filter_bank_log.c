/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_signal.h"

void tinyet_signal_filter_bank_log(const uint32_t *input, int16_t *output, const tinyet_signal_log_params *params) {
  for (int32_t i = 0; i < params->count; i++) {
    const uint32_t x = input[i] << params->correction_bits;
    if (x <= 1u) {
      output[i] = 0;
      continue;
    }
    const int32_t whole = tinyet_signal_bits(x) - 1;
    const uint32_t behind = x - (UINT32_C(1) << whole);
    const uint32_t fraction = whole < 16 ? behind << (16 - whole) : behind >> (whole - 16);
    const TINYET_ROM uint16_t *const at = params->corrections + (fraction >> 9);
    const int32_t step = (int32_t)at[1] - (int32_t)at[0], along = (int32_t)(fraction & 511u);
    const uint32_t correction = (uint32_t)((int32_t)at[0] + ((step * along) >> 16));
    const uint32_t log2 = ((uint32_t)whole << 16) + fraction + correction;
    const uint32_t natural = (uint32_t)((UINT64_C(45426) * log2 + 32768u) >> 16);
    const uint32_t scaled = ((uint32_t)params->scale * natural + 32768u) >> 16;
    output[i] = (int16_t)(scaled < 32767u ? scaled : 32767u);
  }
}
