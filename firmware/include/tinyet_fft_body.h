/* SPDX-License-Identifier: Apache-2.0 */
/* A Fourier transform of complex numbers in stages of 2, 3, 4 and 5. The file that includes this has defined KERNEL,
 * the function's name, and has included the arithmetic of a type. */
#ifndef TINYET_FFT_BODY_H
#define TINYET_FFT_BODY_H

#include "tinyet_fft.h"

/* x: `size` numbers of the first part, and behind them the other parts. The twiddles of part n are n * stride apart. */
static void stage_of_2(fft_complex *x, const TINYET_ROM fft_element *twiddles, int32_t size, int32_t stride) {
  for (int32_t k = 0; k < size; k++, x++) {
    const fft_complex first = fft_divide(x[0], 2);
    const fft_complex other = fft_multiply(fft_divide(x[size], 2), fft_at(twiddles, k * stride));
    x[size] = fft_subtract(first, other);
    x[0] = fft_add(first, other);
  }
}

static void stage_of_3(fft_complex *x, const TINYET_ROM fft_element *twiddles, int32_t size, int32_t stride) {
  const fft_element side = twiddles[2 * stride * size + 1];
  for (int32_t k = 0; k < size; k++, x++) {
    const fft_complex first = fft_divide(x[0], 3);
    const fft_complex one = fft_multiply(fft_divide(x[size], 3), fft_at(twiddles, k * stride));
    const fft_complex two = fft_multiply(fft_divide(x[2 * size], 3), fft_at(twiddles, 2 * k * stride));
    const fft_complex total = fft_add(one, two), apart = fft_subtract(one, two);
    const fft_complex middle = {fft_minus(first.r, fft_half(total.r)), fft_minus(first.i, fft_half(total.i))};
    const fft_element real = fft_times(apart.r, side), imaginary = fft_times(apart.i, side);
    x[0] = fft_add(first, total);
    x[size].r = fft_minus(middle.r, imaginary);
    x[size].i = fft_plus(middle.i, real);
    x[2 * size].r = fft_plus(middle.r, imaginary);
    x[2 * size].i = fft_minus(middle.i, real);
  }
}

static void stage_of_4(fft_complex *x, const TINYET_ROM fft_element *twiddles, int32_t size, int32_t stride,
                       int32_t inverse) {
  const int32_t low = inverse != 0 ? 3 * size : size, high = 4 * size - low;
  for (int32_t k = 0; k < size; k++, x++) {
    const fft_complex first = fft_divide(x[0], 4);
    const fft_complex one = fft_multiply(fft_divide(x[size], 4), fft_at(twiddles, k * stride));
    const fft_complex two = fft_multiply(fft_divide(x[2 * size], 4), fft_at(twiddles, 2 * k * stride));
    const fft_complex three = fft_multiply(fft_divide(x[3 * size], 4), fft_at(twiddles, 3 * k * stride));
    const fft_complex even = fft_add(first, two), apart = fft_subtract(first, two);
    const fft_complex odd = fft_add(one, three), side = fft_subtract(one, three);
    x[0] = fft_add(even, odd);
    x[2 * size] = fft_subtract(even, odd);
    x[low].r = fft_plus(apart.r, side.i);
    x[low].i = fft_minus(apart.i, side.r);
    x[high].r = fft_minus(apart.r, side.i);
    x[high].i = fft_plus(apart.i, side.r);
  }
}

/* first + a * outer + b * inner, of real factors. */
static inline fft_complex middle_of_5(fft_complex first, fft_complex outer, fft_element a, fft_complex inner,
                                      fft_element b) {
  const fft_complex sum = {fft_plus(fft_plus(first.r, fft_times(outer.r, a)), fft_times(inner.r, b)),
                           fft_plus(fft_plus(first.i, fft_times(outer.i, a)), fft_times(inner.i, b))};
  return sum;
}

static void stage_of_5(fft_complex *x, const TINYET_ROM fft_element *twiddles, int32_t size, int32_t stride) {
  const fft_complex near = fft_at(twiddles, stride * size), far = fft_at(twiddles, 2 * stride * size);
  for (int32_t k = 0; k < size; k++, x++) {
    const fft_complex first = fft_divide(x[0], 5);
    const fft_complex one = fft_multiply(fft_divide(x[size], 5), fft_at(twiddles, k * stride));
    const fft_complex two = fft_multiply(fft_divide(x[2 * size], 5), fft_at(twiddles, 2 * k * stride));
    const fft_complex three = fft_multiply(fft_divide(x[3 * size], 5), fft_at(twiddles, 3 * k * stride));
    const fft_complex four = fft_multiply(fft_divide(x[4 * size], 5), fft_at(twiddles, 4 * k * stride));
    const fft_complex outer = fft_add(one, four), outer_apart = fft_subtract(one, four);
    const fft_complex inner = fft_add(two, three), inner_apart = fft_subtract(two, three);
    const fft_complex by_near = middle_of_5(first, outer, near.r, inner, far.r);
    const fft_complex by_far = middle_of_5(first, outer, far.r, inner, near.r);
    const fft_complex wide = {
        fft_plus(fft_times(outer_apart.i, near.i), fft_times(inner_apart.i, far.i)),
        fft_minus(fft_negative(fft_times(outer_apart.r, near.i)), fft_times(inner_apart.r, far.i))};
    const fft_complex narrow = {
        fft_plus(fft_negative(fft_times(outer_apart.i, far.i)), fft_times(inner_apart.i, near.i)),
        fft_minus(fft_times(outer_apart.r, far.i), fft_times(inner_apart.r, near.i))};
    x[0] = fft_add(first, fft_add(outer, inner));
    x[size] = fft_subtract(by_near, wide);
    x[2 * size] = fft_add(by_far, narrow);
    x[3 * size] = fft_subtract(by_far, narrow);
    x[4 * size] = fft_add(by_near, wide);
  }
}

void KERNEL(fft_complex *x, const tinyet_fft *fft, const TINYET_ROM fft_element *twiddles, int32_t inverse) {
  fft_complex *const end = x + fft->count;
  for (int32_t stage = fft->stages - 1; stage >= 0; stage--) {
    const int32_t radix = fft->radix[stage], size = fft->size[stage], stride = fft->stride[stage];
    for (fft_complex *part = x; part != end; part += radix * size) {
      switch (radix) {
      case 2:
        stage_of_2(part, twiddles, size, stride);
        break;
      case 3:
        stage_of_3(part, twiddles, size, stride);
        break;
      case 4:
        stage_of_4(part, twiddles, size, stride, inverse);
        break;
      default:
        stage_of_5(part, twiddles, size, stride);
        break;
      }
    }
  }
}

#endif
