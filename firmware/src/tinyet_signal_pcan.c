/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_signal.h"

/* A function of the noise, quadratic between powers of two. */
static int32_t gain_of(uint32_t noise, const TINYET_ROM int16_t *gains) {
  if (noise <= 2u) {
    return gains[noise];
  }
  const int32_t bits = tinyet_signal_bits(noise);
  gains += 4 * bits - 6;
  const uint32_t fraction = (bits < 11 ? noise << (11 - bits) : noise >> (bits - 11)) & 0x3FFu;
  const int32_t slope = (((int32_t)gains[2] * (int32_t)fraction) >> 5) + (int32_t)gains[1] * 32;
  const int32_t product = (int32_t)((uint32_t)slope * fraction + (UINT32_C(1) << 14));
  return (int16_t)((product >> 15) + gains[0]);
}

void tinyet_signal_pcan(const uint32_t *input, const uint32_t *noise, uint32_t *output,
                        const tinyet_signal_pcan_params *params) {
  for (int32_t i = 0; i < params->count; i++) {
    const uint32_t gain = (uint32_t)gain_of(noise[i], params->gains);
    const uint32_t ratio = (uint32_t)(((uint64_t)input[i] * gain) >> params->snr_shift);
    output[i] = ratio < (UINT32_C(2) << 12) ? (ratio * ratio) >> 20 : (ratio >> 6) - 64u;
  }
}
