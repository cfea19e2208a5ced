/* SPDX-License-Identifier: Apache-2.0 */
/* How Fourier transforms of int32 are computed: products are rounded with ties upward, sums wrap. */
#ifndef TINYET_FFT_S32_H
#define TINYET_FFT_S32_H

#include "tinyet_fft.h"

typedef int32_t fft_element;
typedef int64_t fft_wide;
typedef tinyet_complex_s32 fft_complex;

static inline fft_wide fft_product(fft_element x, fft_element y) { return (fft_wide)x * y; }
static inline fft_element fft_round(fft_wide x) { return (fft_element)((x + (INT64_C(1) << 30)) >> 31); }
static inline fft_element fft_part(fft_element x, int32_t divisor) {
  return fft_round((fft_wide)x * (INT32_MAX / divisor));
}
static inline fft_element fft_plus(fft_element x, fft_element y) { return (int32_t)((uint32_t)x + (uint32_t)y); }
static inline fft_element fft_minus(fft_element x, fft_element y) { return (int32_t)((uint32_t)x - (uint32_t)y); }
static inline fft_element fft_negative(fft_element x) { return (int32_t)(0u - (uint32_t)x); }
static inline fft_element fft_half(fft_element x) { return x >> 1; }
static inline fft_element fft_half_sum(fft_element x, fft_element y) { return fft_plus(x, y) >> 1; }
static inline fft_element fft_half_difference(fft_element x, fft_element y) { return fft_minus(x, y) >> 1; }

/* An inverse transform is divided in its stages. */
static inline void fft_finish(fft_complex *x, int32_t count) {
  (void)x;
  (void)count;
}

static inline void fft_run(fft_complex *x, const tinyet_fft *fft, const TINYET_ROM fft_element *twiddles,
                           int32_t inverse) {
  tinyet_fft_s32(x, fft, twiddles, inverse);
}

#include "tinyet_fft_complex.h"

#endif
