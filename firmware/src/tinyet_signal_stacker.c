/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_signal_frames.h"

void tinyet_signal_stacker(const int16_t *input, const int16_t *before, const int32_t *missing, int16_t *output,
                           int32_t *whole, int16_t *kept, int32_t *still_missing,
                           const tinyet_signal_stacker_params *params) {
  const int32_t count = params->count, frames = params->kept;
  const int is_first = *missing < 0;
  int32_t number = is_first ? params->right : *missing - 1;
  for (int32_t frame = 0; frame < frames; frame++) {
    memcpy(output + frame * count, is_first ? input : before + frame * count, (size_t)count * sizeof *output);
  }
  memcpy(output + frames * count, input, (size_t)count * sizeof *output);
  memcpy(kept, output + count, (size_t)(frames * count) * sizeof *kept);
  number = number < 0 ? 0 : number;
  *whole = number == 0 ? 1 : 0;
  *still_missing = number == 0 ? params->step : number;
}
