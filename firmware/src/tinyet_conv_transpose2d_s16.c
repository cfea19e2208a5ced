/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv_transpose2d.h"

/* The products of `count` elements by four channels' weights, `filter` apart, added to 64-bit sums in blocks that fit in
 * 32 bits. */
static void dot_1x4(const int16_t *x, const TINYET_ROM int8_t *w, int32_t filter, int32_t count, int32_t block,
                    int64_t total[4]) {
  const TINYET_ROM int8_t *w0 = w, *w1 = w0 + filter, *w2 = w1 + filter, *w3 = w2 + filter;
  while (count > 0) {
    const int32_t now = count < block ? count : block;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int32_t k = now; k != 0; k--) {
      const int32_t value = *x++;
      s0 += value * *w0++;
      s1 += value * *w1++;
      s2 += value * *w2++;
      s3 += value * *w3++;
    }
    total[0] += s0, total[1] += s1, total[2] += s2, total[3] += s3;
    count -= now;
  }
}

/* Channels first ... end - 1 of one output pixel. */
static void pixel(const int16_t *input, int16_t *output, const tinyet_conv_transpose2d_tap *taps, int32_t count,
                  int32_t depth, int32_t filter, int32_t first, int32_t end, const tinyet_conv2d_s16_quant *q) {
  for (int32_t c = first; c < end; c += 4) {
    const int32_t channels = end - c < 4 ? end - c : 4;
    int64_t total[4] = {0, 0, 0, 0};
    for (int32_t t = 0; t < count; t++) {
      const int16_t *const x = input + taps[t].input;
      const TINYET_ROM int8_t *const w = q->weights + c * filter + taps[t].weight;
      if (channels == 4) {
        dot_1x4(x, w, filter, depth, 2 * q->block, total);
      } else {
        for (int32_t i = 0; i < channels; i++) {
          int64_t sum = 0;
          for (int32_t k = 0; k < depth; k++) {
            sum += (int32_t)x[k] * w[i * filter + k];
          }
          total[i] += sum;
        }
      }
    }
    for (int32_t i = 0; i < channels; i++) {
      const int32_t value = tinyet_requantize_s64(total[i] + q->bias[c + i], q->multiplier[c + i], q->shift[c + i]);
      output[c + i] = (int16_t)tinyet_clamp(value, q->clamp_low, q->clamp_high);
    }
  }
}

typedef int16_t element;
typedef tinyet_conv_transpose2d_s16_params kernel_params;
#define KERNEL tinyet_conv_transpose2d_s16
#include "tinyet_conv_transpose2d_body.h"
