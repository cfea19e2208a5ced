/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms of real values, with the bits of KISS FFT 1.3.0. Complex numbers have the real part first. */
#ifndef TINYET_FFT_H
#define TINYET_FFT_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TINYET_FFT_STAGES 10

/* A transform of `count` complex numbers in stages, the outermost first. Each puts `radix` parts of `size` numbers
 * together; what is next to each other in a part was `stride` apart in the input. */
typedef struct {
  int32_t count;
  int32_t stages;
  int32_t radix[TINYET_FFT_STAGES], size[TINYET_FFT_STAGES], stride[TINYET_FFT_STAGES];
} tinyet_fft;

/* Where the next number of the input belongs: `digit` counts in the radices, beginning with zeros. */
static inline int32_t tinyet_fft_next(const tinyet_fft *fft, int32_t *digit, int32_t at) {
  for (int32_t stage = fft->stages - 1; stage >= 0; stage--) {
    at += fft->stride[stage];
    if (++digit[stage] < fft->radix[stage]) {
      break;
    }
    at -= fft->stride[stage] * fft->radix[stage];
    digit[stage] = 0;
  }
  return at;
}

#define TINYET_FFT_TYPES(SUFFIX, ELEMENT)                                                            \
  typedef struct {                                                                                   \
    ELEMENT r, i;                                                                                    \
  } tinyet_complex_##SUFFIX;                                                                         \
  typedef struct {                                                                                   \
    const TINYET_ROM ELEMENT *twiddles;       /* [count][2] */                                       \
    const TINYET_ROM ELEMENT *super_twiddles; /* [count / 2][2] */                                   \
    tinyet_fft fft;                                                                                  \
    int32_t frames;                                                                                  \
    int32_t given; /* values of a frame; zeros stand for the others */                               \
  } tinyet_signal_rfft_##SUFFIX##_params;                                                            \
  typedef struct {                                                                                   \
    const TINYET_ROM ELEMENT *twiddles;                                                              \
    const TINYET_ROM ELEMENT *super_twiddles;                                                        \
    tinyet_fft fft;                                                                                  \
    int32_t frames;                                                                                  \
  } tinyet_signal_irfft_##SUFFIX##_params;                                                           \
  /* All stages, in place, of numbers that lie in the order that tinyet_fft_next gives. */           \
  void tinyet_fft_##SUFFIX(tinyet_complex_##SUFFIX *x, const tinyet_fft *fft,                        \
                           const TINYET_ROM ELEMENT *twiddles, int32_t inverse);                     \
  void tinyet_signal_rfft_##SUFFIX(const ELEMENT *input, ELEMENT *output,                            \
                                   const tinyet_signal_rfft_##SUFFIX##_params *params);              \
  /* scratch: as long as a frame of the output. */                                                   \
  void tinyet_signal_irfft_##SUFFIX(const ELEMENT *input, ELEMENT *output, void *scratch,            \
                                    const tinyet_signal_irfft_##SUFFIX##_params *params);

TINYET_FFT_TYPES(s16, int16_t)
TINYET_FFT_TYPES(s32, int32_t)
TINYET_FFT_TYPES(f32, float)

#ifdef __cplusplus
}
#endif

#endif
