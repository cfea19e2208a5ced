/* SPDX-License-Identifier: Apache-2.0 */
/* Complex numbers of the type fft_element. The file that includes this has that type, fft_product, of two of
 * them, fft_complex, and fft_round, fft_part, fft_plus and fft_minus. */
#ifndef TINYET_FFT_COMPLEX_H
#define TINYET_FFT_COMPLEX_H

static inline fft_element fft_times(fft_element x, fft_element y) { return fft_round(fft_product(x, y)); }

static inline fft_complex fft_add(fft_complex x, fft_complex y) {
  const fft_complex sum = {fft_plus(x.r, y.r), fft_plus(x.i, y.i)};
  return sum;
}

static inline fft_complex fft_subtract(fft_complex x, fft_complex y) {
  const fft_complex difference = {fft_minus(x.r, y.r), fft_minus(x.i, y.i)};
  return difference;
}

static inline fft_complex fft_multiply(fft_complex x, fft_complex y) {
  const fft_complex product = {fft_round(fft_product(x.r, y.r) - fft_product(x.i, y.i)),
                               fft_round(fft_product(x.r, y.i) + fft_product(x.i, y.r))};
  return product;
}

static inline fft_complex fft_divide(fft_complex x, int32_t divisor) {
  const fft_complex part = {fft_part(x.r, divisor), fft_part(x.i, divisor)};
  return part;
}

static inline fft_complex fft_at(const TINYET_ROM fft_element *table, int32_t index) {
  const fft_complex found = {table[2 * index], table[2 * index + 1]};
  return found;
}

#endif
