/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one integer, by look-up table (lut). Of an int8 any: sigmoid, a requantization, an addition of a constant
 * ...; of an int16 those that straight segments follow well. The output may be the input. */
#ifndef TINYET_LUT_H
#define TINYET_LUT_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const TINYET_ROM int8_t *table; /* [256], for the inputs 0 ... 127, -128 ... -1 */
  int32_t count;
} tinyet_lut_s8_params;

void tinyet_lut_s8(const int8_t *input, int8_t *output, const tinyet_lut_s8_params *params);

/* The same for `pixels` pixels of `channels` values each, whose pixels are the strides' bytes apart. */
static inline void tinyet_lut_pixels_s8(const int8_t *input, int8_t *output, const TINYET_ROM int8_t *table, int32_t pixels,
                                        int32_t channels, int32_t in_pixel_stride, int32_t out_pixel_stride) {
  for (; pixels != 0; pixels--, input += in_pixel_stride, output += out_pixel_stride) {
    int32_t c = 0;
    for (; c < (channels & ~3); c += 4) {
      const int8_t a = table[(uint8_t)input[c]], b = table[(uint8_t)input[c + 1]];
      const int8_t d = table[(uint8_t)input[c + 2]], e = table[(uint8_t)input[c + 3]];
      output[c] = a, output[c + 1] = b, output[c + 2] = d, output[c + 3] = e;
    }
    for (; c < channels; c++) {
      output[c] = table[(uint8_t)input[c]];
    }
  }
}

typedef struct {
  const TINYET_ROM int16_t *table; /* [513], for the inputs -32768, -32640 ... 32768 */
  int32_t count;
} tinyet_lut_s16_params;

/* The value of the upper nine bits, and a straight line from there by the lower seven. */
static inline int32_t tinyet_lut_interpolate_s16(const TINYET_ROM int16_t *table, int32_t x) {
  const TINYET_ROM int16_t *const piece = table + 256 + (x >> 7);
  const int32_t base = piece[0];
  return base + (((piece[1] - base) * (x & 0x7f) + 64) >> 7);
}

void tinyet_lut_s16(const int16_t *input, int16_t *output, const tinyet_lut_s16_params *params);

typedef struct {
  const TINYET_ROM uint16_t *table; /* [256], sigmoid(i / 24) in Q0.16 */
  int32_t factor, shift; /* from the input to units of 1 / 12288: multiplied, then shifted to the right with rounding */
  int32_t count;
} tinyet_sigmoid_s16_params;

/* Output scale 2^-15. */
void tinyet_sigmoid_s16(const int16_t *input, int16_t *output, const tinyet_sigmoid_s16_params *params);
void tinyet_tanh_s16(const int16_t *input, int16_t *output, const tinyet_sigmoid_s16_params *params);

/* A straight line on each side of zero: leaky ReLU, the absolute value, the negative. */
typedef struct {
  int32_t multiplier, shift; /* as tinyet_requantize takes them */
  int32_t before, after;     /* 1 or -1: signs by which its argument and its result are multiplied */
} tinyet_pwl_segment_s16;

typedef struct {
  tinyet_pwl_segment_s16 above, below; /* for x >= 0 and x < 0 */
  int32_t count;
} tinyet_pwl_s16_params;

void tinyet_pwl_s16(const int16_t *input, int16_t *output, const tinyet_pwl_s16_params *params);

#ifdef __cplusplus
}
#endif

#endif
