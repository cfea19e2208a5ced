/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_signal_frames.h"

void tinyet_signal_delay(const int16_t *input, const int16_t *before, int16_t *output, int16_t *kept,
                         const tinyet_signal_delay_params *params) {
  const int32_t count = params->count, delay = params->delay;
  /* Old samples first, then new ones: so many of the old ones come out, and so many stay. */
  const int32_t out_old = delay < count ? delay : count, kept_old = delay - out_old;
  const int32_t out_new = count - out_old, kept_new = delay - kept_old;
  for (int32_t frame = 0; frame < params->frames; frame++) {
    memcpy(output, before, (size_t)out_old * sizeof *output);
    memcpy(output + out_old, input, (size_t)out_new * sizeof *output);
    memcpy(kept, before + out_old, (size_t)kept_old * sizeof *kept);
    memcpy(kept + kept_old, input + out_new, (size_t)kept_new * sizeof *kept);
    input += count;
    before += delay;
    output += count;
    kept += delay;
  }
}
