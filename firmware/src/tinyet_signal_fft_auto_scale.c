/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_signal.h"

void tinyet_signal_fft_auto_scale(const int16_t *input, int16_t *output, int32_t *shift,
                                  const tinyet_signal_count *params) {
  /* In 16 bits, where -32768 has no absolute value, and stays. */
  int32_t largest = 0;
  for (int32_t i = 0; i < params->count; i++) {
    const int32_t value = input[i];
    if (value > largest) {
      largest = value;
    } else if (-value > largest) {
      largest = value == INT16_MIN ? value : -value;
    }
  }
  const int32_t room = largest > 0 ? 15 - tinyet_signal_bits((uint32_t)largest) : 0;
  for (int32_t i = 0; i < params->count; i++) {
    output[i] = (int16_t)(uint16_t)((uint32_t)(int32_t)input[i] << room);
  }
  *shift = room;
}
