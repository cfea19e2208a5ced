/* SPDX-License-Identifier: Apache-2.0 */
/* tinyet_log_bands_s16 for cores with Helium, four complex numbers at a time: see tinyet_mve.h.
 *
 * Numbers lie in blocks of four: their real parts, then their imaginary ones. The first stage, which is of radix 4, is computed
 * of four quarters of the frame as they are multiplied with the window; all other stages read and write whole blocks. */
#ifndef TINYET_LOG_BANDS_MVE_H
#define TINYET_LOG_BANDS_MVE_H

#include "tinyet_log_bands.h"
#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* quarter: pairs of samples of a quarter of the transform. given: pairs of a frame, whole quarters and a multiple of four. What
 * fills up the last vectors of a table is zero. */
typedef struct {
  const int16_t *window;      /* [quarter / 4][4][8]: of the last quarter first; 0 where nothing is given */
  const uint16_t *order;      /* [quarter]: where the block of the first stage begins, in bytes */
  const int16_t *twiddles;    /* of each stage but the first [size / 4][radix - 1][4][2], in the order in which they are read */
  const int16_t *split;       /* [count / 8][4][2], the first one of no number */
  const uint16_t *runs;       /* [bands][2]: first bin of a band, from the block of `low` on, and how many */
  const uint16_t *weights;    /* of the bands, one behind the other */
  const uint16_t *logarithms; /* [33] */
  int32_t radix[TINYET_LOG_BANDS_STAGES];
  int32_t stages, count;
  int32_t frames, given;
  int32_t low, high;
  int32_t bands;
  int32_t right;
  int32_t floor, floor_shift;
  int32_t most;
  int32_t offset;
  int32_t multiplier, shift; /* shift: -1 ... -31 */
  int32_t quarter;
} tinyet_log_bands_s16_mve_params;

/* scratch: count + 4 complex numbers of int32. */
void tinyet_log_bands_s16_mve(const int16_t *input, int16_t *output, void *scratch,
                              const tinyet_log_bands_s16_mve_params *params);

#ifdef __cplusplus
}
#endif

#endif
