/* SPDX-License-Identifier: Apache-2.0 */
/* Real values from their Fourier transform. The file that includes this has defined KERNEL, the function's name, and
 * kernel_params, its parameters, and has included the arithmetic of a type. */
#ifndef TINYET_SIGNAL_IRFFT_BODY_H
#define TINYET_SIGNAL_IRFFT_BODY_H

#include "tinyet_fft.h"

void KERNEL(const fft_element *input, fft_element *output, void *scratch, const kernel_params *params) {
  const int32_t count = params->fft.count;
  const fft_complex *given = (const fft_complex *)input;
  fft_complex *const x = (fft_complex *)scratch, *out = (fft_complex *)output;
  for (int32_t frame = 0; frame < params->frames; frame++, given += count + 1, out += count) {
    const fft_complex ends = {fft_plus(given[0].r, given[count].r), fft_minus(given[0].r, given[count].r)};
    x[0] = fft_divide(ends, 2);
    for (int32_t k = 1; 2 * k <= count; k++) {
      const fft_complex opposite = {given[count - k].r, fft_negative(given[count - k].i)};
      const fft_complex here = fft_divide(given[k], 2), there = fft_divide(opposite, 2);
      const fft_complex even = fft_add(here, there);
      const fft_complex odd = fft_multiply(fft_subtract(here, there), fft_at(params->super_twiddles, k - 1));
      const fft_complex difference = fft_subtract(even, odd);
      x[k] = fft_add(even, odd);
      x[count - k].r = difference.r;
      x[count - k].i = fft_negative(difference.i);
    }
    int32_t digit[TINYET_FFT_STAGES] = {0}, from = 0;
    for (int32_t k = 0; k < count; k++) {
      out[k] = x[from];
      from = tinyet_fft_next(&params->fft, digit, from);
    }
    fft_run(out, &params->fft, params->twiddles, 1);
    fft_finish(out, count);
  }
}

#endif
