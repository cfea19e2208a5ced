/* SPDX-License-Identifier: Apache-2.0 */
/* How Fourier transforms of float are computed: each operation by itself, in the order that is written. */
#ifndef TINYET_FFT_F32_H
#define TINYET_FFT_F32_H

#include "tinyet_fft.h"

typedef float fft_element;
typedef float fft_wide;
typedef tinyet_complex_f32 fft_complex;

static inline fft_wide fft_product(fft_element x, fft_element y) { return x * y; }
static inline fft_element fft_round(fft_wide x) { return x; }
static inline fft_element fft_part(fft_element x, int32_t divisor) {
  (void)divisor;
  return x;
}
static inline fft_element fft_plus(fft_element x, fft_element y) { return x + y; }
static inline fft_element fft_minus(fft_element x, fft_element y) { return x - y; }
static inline fft_element fft_negative(fft_element x) { return -x; }
static inline fft_element fft_half(fft_element x) { return x * 0.5f; }
static inline fft_element fft_half_sum(fft_element x, fft_element y) { return (x + y) * 0.5f; }
static inline fft_element fft_half_difference(fft_element x, fft_element y) { return (x - y) * 0.5f; }

/* The last step of an inverse transform: division by the number of real values. */
static inline void fft_finish(fft_complex *x, int32_t count) {
  for (int32_t k = 0; k < count; k++) {
    x[k].r /= (float)(2 * count);
    x[k].i /= (float)(2 * count);
  }
}

static inline void fft_run(fft_complex *x, const tinyet_fft *fft, const TINYET_ROM fft_element *twiddles,
                           int32_t inverse) {
  tinyet_fft_f32(x, fft, twiddles, inverse);
}

#include "tinyet_fft_complex.h"

#endif
