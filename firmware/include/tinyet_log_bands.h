/* SPDX-License-Identifier: Apache-2.0 */
/* Logarithms of bands of a spectrum, in fixed point: of frames of int16 samples, [frames][given] → [frames][bands]. */
#ifndef TINYET_LOG_BANDS_H
#define TINYET_LOG_BANDS_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TINYET_LOG_BANDS_STAGES 10

/* The transform of 2 * count real values is one of `count` complex numbers, in stages, the innermost first. */
typedef struct {
  const TINYET_ROM int16_t *window;      /* [given], 15 bits behind the point */
  const TINYET_ROM uint16_t *order;      /* [count]: where each pair of samples lies before the first stage */
  const TINYET_ROM int16_t *twiddles;    /* [][2]: minus what the transform is made with */
  const TINYET_ROM int16_t *split;       /* [count / 2][2]: of the step to the transform of real values */
  const TINYET_ROM uint16_t *runs;       /* [bands][2]: first bin of a band, from `low` on, and how many */
  const TINYET_ROM uint16_t *weights;    /* of the bands, one behind the other */
  const TINYET_ROM uint16_t *logarithms; /* [33]: log2(1 + i / 32), 15 bits behind the point */
  int32_t radix[TINYET_LOG_BANDS_STAGES];
  int32_t stages, count;
  int32_t frames, given; /* samples of a frame; zeros stand for the others */
  int32_t low, high;     /* bins that bands read, the last one exclusive */
  int32_t bands;
  int32_t right; /* shift of a sample times its window */
  int32_t floor, floor_shift;
  int32_t most;   /* bits of headroom that are used */
  int32_t offset; /* of log2 */
  int32_t multiplier, shift;
} tinyet_log_bands_s16_params;

/* scratch: count + 1 complex numbers of int32. */
void tinyet_log_bands_s16(const int16_t *input, int16_t *output, void *scratch,
                          const tinyet_log_bands_s16_params *params);

#ifdef __cplusplus
}
#endif

#endif
