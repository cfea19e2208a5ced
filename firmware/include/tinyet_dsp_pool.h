/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised int8 sums over all pixels of an image for cores with DSP instructions: see tinyet_dsp.h. */
#ifndef TINYET_DSP_POOL_H
#define TINYET_DSP_POOL_H

#include "tinyet_average.h"
#include "tinyet_dsp.h"

/* Four channels of `count` pixels, which are `channels` bytes apart; at most 255 of them, so that sums fit int16. */
TINYET_DSP_INLINE void tinyet_dsp_four_sums(int32_t sums[4], const int8_t *from, const int32_t count,
                                            const int32_t channels) {
  uint32_t even = 0, odd = 0;
#pragma GCC unroll 8
  for (int32_t i = 0; i < count; i++) {
    const uint32_t word = tinyet_dsp_load(from);
    even = tinyet_dsp_add_even(even, word);
    odd = tinyet_dsp_add_odd(odd, word);
    from += channels;
  }
  sums[0] = tinyet_dsp_half(even, 0);
  sums[1] = tinyet_dsp_half(odd, 0);
  sums[2] = tinyet_dsp_half(even, 1);
  sums[3] = tinyet_dsp_half(odd, 1);
}

/* The last four channels overlap those before where their number is no multiple of 4. `finish` is an expression of `sum`. */
#define TINYET_DSP_OVER_PIXELS(input, output, images, count, channels, finish) \
  for (int32_t image = 0; image < (images); image++) {                         \
    for (int32_t c = 0; c < (channels); c += 4) {                              \
      if ((channels) % 4 != 0 && c > (channels)-4) {                           \
        c = (channels)-4;                                                      \
      }                                                                        \
      int32_t sums[4];                                                         \
      tinyet_dsp_four_sums(sums, (input) + c, (count), (channels));            \
      for (int32_t k = 0; k < 4; k++) {                                        \
        const int32_t sum = sums[k];                                           \
        (output)[c + k] = (finish);                                            \
      }                                                                        \
    }                                                                          \
    (input) += (count) * (channels);                                           \
    (output) += (channels);                                                    \
  }

/* Averages, halves away from zero. */
TINYET_DSP_INLINE void tinyet_dsp_average(const int8_t *input, int8_t *output, const int32_t images,
                                          const int32_t count, const int32_t channels, const tinyet_division division){
    TINYET_DSP_OVER_PIXELS(input, output, images, count, channels, tinyet_divide(sum + division.start, &division))}

/* Requantized sums. */
TINYET_DSP_INLINE void tinyet_dsp_sum(const int8_t *input, int8_t *output, const int32_t images, const int32_t count,
                                      const int32_t channels, const int32_t bias, const int32_t multiplier,
                                      const int32_t shift, const int32_t zero_point) {
  TINYET_DSP_OVER_PIXELS(input, output, images, count, channels,
                         (int8_t)tinyet_dsp_saturate(tinyet_requantize(sum + bias, multiplier, shift) + zero_point))
}

#endif
