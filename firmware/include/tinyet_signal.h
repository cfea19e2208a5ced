/* SPDX-License-Identifier: Apache-2.0 */
/* Sound to features, in integers: the operators of TFLM's signal library, with its bits. */
#ifndef TINYET_SIGNAL_H
#define TINYET_SIGNAL_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t count;
} tinyet_signal_count;

/* Bits of a number: the place of the highest one that is set, from 1; x is not 0. */
static inline int32_t tinyet_signal_bits(uint32_t x) { return 32 - tinyet_leading_zeros(x); }

typedef struct {
  const TINYET_ROM int16_t *window; /* [count] */
  int32_t frames, count;
  int32_t shift;
} tinyet_signal_window_params;

/* input * window / 2^shift, rounded down, saturated. The output may be the input. */
void tinyet_signal_window(const int16_t *input, int16_t *output, const tinyet_signal_window_params *params);

/* Shifted left as far as the largest value allows; *shift says how far. */
void tinyet_signal_fft_auto_scale(const int16_t *input, int16_t *output, int32_t *shift,
                                  const tinyet_signal_count *params);

typedef struct {
  int32_t count;
  int32_t start, end; /* of the frequencies that have an energy; it is 0 elsewhere */
} tinyet_signal_energy_params;

/* Of complex numbers, the real part first. */
void tinyet_signal_energy(const int16_t *input, uint32_t *output, const tinyet_signal_energy_params *params);

typedef struct {
  const TINYET_ROM int16_t *weights;
  const TINYET_ROM int16_t *unweights;        /* what a band gives to the next one */
  const TINYET_ROM int16_t *frequency_starts; /* [bands] */
  const TINYET_ROM int16_t *weight_starts;    /* [bands] */
  const TINYET_ROM int16_t *widths;           /* [bands] */
  int32_t bands;                              /* one more than there are channels */
} tinyet_signal_filter_bank_params;

/* Sums of 64 bits, the lower word first. */
void tinyet_signal_filter_bank(const uint32_t *input, uint32_t *output, const tinyet_signal_filter_bank_params *params);

/* Nearest roots of such sums / 2^shift, rounded down. */
void tinyet_signal_filter_bank_square_root(const uint32_t *input, const int32_t *shift, uint32_t *output,
                                           const tinyet_signal_count *params);

typedef struct {
  int32_t count;
  int32_t smoothing[2], one_minus_smoothing[2]; /* of even and of odd channels */
  int32_t min_signal_remaining;
  int32_t smoothing_bits, bits;
  int32_t clamping;
} tinyet_signal_spectral_subtraction_params;

/* before: the noise of the run before; noise: that of this one. */
void tinyet_signal_spectral_subtraction(const uint32_t *input, const uint32_t *before, uint32_t *output,
                                        uint32_t *noise, const tinyet_signal_spectral_subtraction_params *params);

typedef struct {
  const TINYET_ROM int16_t *gains;
  int32_t count;
  int32_t snr_shift;
} tinyet_signal_pcan_params;

/* The output may be the input, or the noise. */
void tinyet_signal_pcan(const uint32_t *input, const uint32_t *noise, uint32_t *output,
                        const tinyet_signal_pcan_params *params);

typedef struct {
  const TINYET_ROM uint16_t *corrections; /* [130] */
  int32_t count;
  int32_t scale;
  int32_t correction_bits;
} tinyet_signal_log_params;

void tinyet_signal_filter_bank_log(const uint32_t *input, int16_t *output, const tinyet_signal_log_params *params);

#ifdef __cplusplus
}
#endif

#endif
