/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_signal_frames.h"

/* `count` samples from `at` on of those before and those of the input, one after another. */
static void copy_samples(int16_t *to, const int16_t *before, int32_t kept, const int16_t *input, int32_t at,
                         int32_t count) {
  const int32_t left = at < kept ? kept - at : 0, old = left < count ? left : count;
  if (old > 0) {
    memcpy(to, before + at, (size_t)old * sizeof *to);
  }
  if (count > old) {
    memcpy(to + old, input + (at + old - kept), (size_t)(count - old) * sizeof *to);
  }
}

void tinyet_signal_framer(const int16_t *input, const int16_t *before, const int32_t *missing, int16_t *output,
                          int32_t *whole, int16_t *kept, int32_t *still_missing,
                          const tinyet_signal_framer_params *params) {
  const int32_t count = params->count, size = params->size, history = params->kept;
  for (int32_t channel = 0; channel < params->channels; channel++) {
    for (int32_t at = 0; at < count; at += params->step) {
      copy_samples(output, before, history, input, at, size);
      output += size;
    }
    copy_samples(kept, before, history, input, count, history);
    input += count;
    before += history;
    kept += history;
  }
  *whole = *missing <= 0 ? 1 : 0;
  *still_missing = *missing > count ? *missing - count : 0;
}
