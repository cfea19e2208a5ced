/* SPDX-License-Identifier: Apache-2.0 */
/* How Fourier transforms of int16 are computed: products are rounded with ties upward, sums wrap. */
#ifndef TINYET_FFT_S16_H
#define TINYET_FFT_S16_H

#include "tinyet_fft.h"

typedef int16_t fft_element;
typedef int32_t fft_wide;
typedef tinyet_complex_s16 fft_complex;

static inline fft_wide fft_product(fft_element x, fft_element y) { return (fft_wide)x * y; }
static inline fft_element fft_round(fft_wide x) { return (fft_element)((x + (INT32_C(1) << 14)) >> 15); }
static inline fft_element fft_part(fft_element x, int32_t divisor) {
  return fft_round((fft_wide)x * (INT16_MAX / divisor));
}
static inline fft_element fft_plus(fft_element x, fft_element y) { return (fft_element)((int32_t)x + y); }
static inline fft_element fft_minus(fft_element x, fft_element y) { return (fft_element)((int32_t)x - y); }
static inline fft_element fft_negative(fft_element x) { return (fft_element)(-(int32_t)x); }
static inline fft_element fft_half(fft_element x) { return (fft_element)(x >> 1); }
static inline fft_element fft_half_sum(fft_element x, fft_element y) { return (fft_element)(((int32_t)x + y) >> 1); }
static inline fft_element fft_half_difference(fft_element x, fft_element y) {
  return (fft_element)(((int32_t)x - y) >> 1);
}

/* An inverse transform is divided in its stages. */
static inline void fft_finish(fft_complex *x, int32_t count) {
  (void)x;
  (void)count;
}

static inline void fft_run(fft_complex *x, const tinyet_fft *fft, const TINYET_ROM fft_element *twiddles,
                           int32_t inverse) {
  tinyet_fft_s16(x, fft, twiddles, inverse);
}

#include "tinyet_fft_complex.h"

#endif
