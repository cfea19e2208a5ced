/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv_transpose2d.h"

static inline int8_t finish(int32_t acc, int32_t channel, const tinyet_conv2d_s8_quant *q) {
  const int32_t value = tinyet_requantize(acc, q->multiplier[channel], q->shift[channel]) + q->out_zero_point;
  return (int8_t)tinyet_clamp(value, q->clamp_low, q->clamp_high);
}

/* Channels first ... end - 1 of one output pixel, four at once: a load of the input feeds four multiply-accumulates. */
static void pixel(const int8_t *input, int8_t *output, const tinyet_conv_transpose2d_tap *taps, int32_t count,
                  int32_t depth, int32_t filter, int32_t first, int32_t end, const tinyet_conv2d_s8_quant *q) {
  const int32_t offset = -q->in_zero_point;
  int32_t c = first;
  for (; c + 4 <= end; c += 4) {
    int32_t s0 = q->bias[c], s1 = q->bias[c + 1], s2 = q->bias[c + 2], s3 = q->bias[c + 3];
    for (int32_t t = 0; t < count; t++) {
      const int8_t *x = input + taps[t].input;
      const TINYET_ROM int8_t *w0 = q->weights + c * filter + taps[t].weight;
      const TINYET_ROM int8_t *w1 = w0 + filter, *w2 = w1 + filter, *w3 = w2 + filter;
      for (int32_t k = depth; k != 0; k--) {
        const int32_t value = *x++ + offset;
        s0 += value * *w0++;
        s1 += value * *w1++;
        s2 += value * *w2++;
        s3 += value * *w3++;
      }
    }
    output[c] = finish(s0, c, q);
    output[c + 1] = finish(s1, c + 1, q);
    output[c + 2] = finish(s2, c + 2, q);
    output[c + 3] = finish(s3, c + 3, q);
  }
  for (; c < end; c++) {
    int32_t sum = q->bias[c];
    for (int32_t t = 0; t < count; t++) {
      const int8_t *x = input + taps[t].input;
      const TINYET_ROM int8_t *w = q->weights + c * filter + taps[t].weight;
      for (int32_t k = depth; k != 0; k--) {
        sum += (*x++ + offset) * *w++;
      }
    }
    output[c] = finish(sum, c, q);
  }
}

typedef int8_t element;
typedef tinyet_conv_transpose2d_s8_params kernel_params;
#define KERNEL tinyet_conv_transpose2d_s8
#include "tinyet_conv_transpose2d_body.h"
