/* SPDX-License-Identifier: Apache-2.0 */
/* The Fourier transform of real values. The file that includes this has defined KERNEL, the function's name, and
 * kernel_params, its parameters, and has included the arithmetic of a type. It is made where the output lies: of pairs
 * of values as complex numbers first, of which each two that lie opposite give two numbers of the result. */
#ifndef TINYET_SIGNAL_RFFT_BODY_H
#define TINYET_SIGNAL_RFFT_BODY_H

#include "tinyet_fft.h"

void KERNEL(const fft_element *input, fft_element *output, const kernel_params *params) {
  const int32_t count = params->fft.count, given = params->given;
  fft_complex *x = (fft_complex *)output;
  for (int32_t frame = 0; frame < params->frames; frame++, x += count + 1, input += given) {
    int32_t digit[TINYET_FFT_STAGES] = {0}, from = 0;
    for (int32_t k = 0; k < count; k++) {
      x[k].r = 2 * from < given ? input[2 * from] : 0;
      x[k].i = 2 * from + 1 < given ? input[2 * from + 1] : 0;
      from = tinyet_fft_next(&params->fft, digit, from);
    }
    fft_run(x, &params->fft, params->twiddles, 0);
    const fft_complex ends = fft_divide(x[0], 2);
    x[0].r = fft_plus(ends.r, ends.i);
    x[0].i = 0;
    x[count].r = fft_minus(ends.r, ends.i);
    x[count].i = 0;
    for (int32_t k = 1; 2 * k <= count; k++) {
      const fft_complex opposite = {x[count - k].r, fft_negative(x[count - k].i)};
      const fft_complex here = fft_divide(x[k], 2), there = fft_divide(opposite, 2);
      const fft_complex total = fft_add(here, there);
      const fft_complex turned = fft_multiply(fft_subtract(here, there), fft_at(params->super_twiddles, k - 1));
      x[k].r = fft_half_sum(total.r, turned.r);
      x[k].i = fft_half_sum(total.i, turned.i);
      x[count - k].r = fft_half_difference(total.r, turned.r);
      x[count - k].i = fft_half_difference(turned.i, total.i);
    }
  }
}

#endif
