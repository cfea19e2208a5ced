/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that overlap, added up. The file that includes this has defined KERNEL, the function's name, `element`, the
 * type of the samples, and plus(x, y), their sum. */
#ifndef TINYET_SIGNAL_OVERLAP_ADD_BODY_H
#define TINYET_SIGNAL_OVERLAP_ADD_BODY_H

#include "tinyet_signal_frames.h"

void KERNEL(const element *input, const element *before, element *output, element *left,
            const tinyet_signal_overlap_add_params *params) {
  const int32_t size = params->size, step = params->step, rest = size - step;
  for (int32_t channel = 0; channel < params->channels; channel++) {
    memcpy(left, before, (size_t)rest * sizeof *left);
    for (int32_t frame = 0; frame < params->frames; frame++) {
      for (int32_t i = 0; i < step; i++) {
        output[i] = plus(i < rest ? left[i] : (element)0, input[i]);
      }
      for (int32_t i = step; i < size; i++) {
        left[i - step] = plus(i < rest ? left[i] : (element)0, input[i]);
      }
      input += size;
      output += step;
    }
    before += rest;
    left += rest;
  }
}

#endif
