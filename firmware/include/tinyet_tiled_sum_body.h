/* SPDX-License-Identifier: Apache-2.0 */
/* A tile of an image whose pixels are summed. The file that includes this has defined
 *
 *   KERNEL                  the function's name
 *   element, LEAST, GREATEST   the type of the elements, and its range
 *   AVERAGE                 1: sums are divided; 0: they are requantized */
#ifndef TINYET_TILED_SUM_BODY_H
#define TINYET_TILED_SUM_BODY_H

#include "tinyet_four_sums.h"
#include "tinyet_tiled_sum.h"

#if AVERAGE
typedef tinyet_tiled_average_params kernel_params;
#else
typedef tinyet_tiled_sum_params kernel_params;
#endif

/* Adds `pixels` values of one channel. */
static int32_t channel_sum(int32_t sum, const element *x, int32_t pixels, int32_t channels) {
  for (; pixels > 0; pixels--) {
    sum += *x;
    x += channels;
  }
  return sum;
}

static void finish(const int32_t *sums, element *output, const kernel_params *params) {
#if AVERAGE
  const tinyet_division division = tinyet_division_at(params->division, 0);
#endif
  for (int32_t c = params->shape.channels; c > 0; c--) {
#if AVERAGE
    const int32_t value = tinyet_divide_wide(*sums++ + division.start, &division);
#else
    const int32_t value = tinyet_requantize(*sums++ + params->bias, params->multiplier, params->shift) + params->out_zero_point;
#endif
    *output++ = (element)tinyet_clamp(value, LEAST, GREATEST);
  }
}

void KERNEL(const element *input, element *output, void *state, const kernel_params *params) {
  const int32_t channels = params->shape.channels, pixels = params->shape.pixels;
  int32_t *const done = (int32_t *)state;
  int32_t *const sums = done + 1;
#ifdef __AVR__
  if (sizeof(element) == 1u) {
    const tinyet_extent each = TINYET_EXTENT(channels);
    tinyet_four_sums four = {1, TINYET_EXTENT(pixels), each, 0, {0u, 0u, 0u, 0u}};
    for (tinyet_extent c = 0; c < each;) {
      tinyet_add_four((const int8_t *)input + c, &four); /* bytes behind the last can be read, and count nothing */
      for (uint8_t k = 0u; k < 4u && c < each; k++, c++) {
        sums[c] += (int32_t)four.sums[k] - (pixels << 7);
      }
    }
    if (++*done == params->shape.tiles) {
      finish(sums, output, params);
    }
    return;
  }
#endif
  int32_t c = 0;
  for (; c + 4 <= channels; c += 4) {
    int32_t s0 = sums[c], s1 = sums[c + 1], s2 = sums[c + 2], s3 = sums[c + 3];
    const element *x = input + c;
    for (int32_t left = pixels; left > 0; left--) {
      s0 += x[0];
      s1 += x[1];
      s2 += x[2];
      s3 += x[3];
      x += channels;
    }
    sums[c] = s0;
    sums[c + 1] = s1;
    sums[c + 2] = s2;
    sums[c + 3] = s3;
  }
  for (; c < channels; c++) {
    sums[c] = channel_sum(sums[c], input + c, pixels, channels);
  }
  if (++*done == params->shape.tiles) {
    finish(sums, output, params);
  }
}

#endif
