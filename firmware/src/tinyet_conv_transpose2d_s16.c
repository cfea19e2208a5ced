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

void tinyet_conv_transpose2d_s16(const int16_t *input, int16_t *output, void *scratch,
                                 const tinyet_conv_transpose2d_s16_params *params) {
  const tinyet_conv_transpose2d_shape *const s = &params->shape;
  const int32_t in_count = s->in_c / s->groups, out_count = s->out_c / s->groups;
  const int32_t filter = s->kernel_h * s->kernel_w * in_count;
  tinyet_conv_transpose2d_tap *const taps = (tinyet_conv_transpose2d_tap *)scratch;
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t out_y = 0, row = 0, row_q = 0; out_y < s->out_h; out_y++) {
      for (int32_t out_x = 0, column = 0, column_q = 0; out_x < s->out_w; out_x++) {
        const int32_t count = tinyet_conv_transpose2d_taps(s, s->row_phases + 2 * row, row_q,
                                                           s->column_phases + 2 * column, column_q, taps);
        for (int32_t g = 0; g < s->groups; g++) {
          pixel(input + g * in_count, output, taps, count, in_count, filter, g * out_count, (g + 1) * out_count,
                &params->quant);
        }
        output += s->out_c;
        if (++column == s->stride_w) {
          column = 0, column_q++;
        }
      }
      if (++row == s->stride_h) {
        row = 0, row_q++;
      }
    }
    input += s->in_h * s->in_w * s->in_c;
  }
}
