/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d.h"
#include "tinyet_int16x2.h"
#include "tinyet_window.h"

/* Four channels of one output pixel at a time stay in registers while the taps are walked. Padding is zero, so taps outside
 * the image are not in the list. */

typedef struct {
  int32_t input, weight; /* where a tap reads the image and the weights of four channels, in elements */
} tap;

typedef struct {
  int32_t sum[4];
} quad;

/* One tap of four channels. */
static inline void add_tap(quad *q, const int16_t *x, const TINYET_ROM int8_t *w) {
#if TINYET_HAS_SIMD32
  const uint32_t weights = tinyet_load4(w);
  const int32_t first = (int32_t)tinyet_load4(x), second = (int32_t)tinyet_load4(x + 2);
  const int32_t even = tinyet_even_bytes(weights), odd = tinyet_odd_bytes(weights);
  q->sum[0] = __smlabb(first, even, q->sum[0]);
  q->sum[1] = __smlatb(first, odd, q->sum[1]);
  q->sum[2] = __smlabt(second, even, q->sum[2]);
  q->sum[3] = __smlatt(second, odd, q->sum[3]);
#else
  q->sum[0] += (int32_t)x[0] * w[0];
  q->sum[1] += (int32_t)x[1] * w[1];
  q->sum[2] += (int32_t)x[2] * w[2];
  q->sum[3] += (int32_t)x[3] * w[3];
#endif
}

static inline int16_t finish(int32_t sum, int32_t channel, const tinyet_conv2d_s16_quant *q) {
  const int32_t value = tinyet_requantize_s64(sum + q->bias[channel], q->multiplier[channel], q->shift[channel]);
  return (int16_t)tinyet_clamp(value, q->clamp_low, q->clamp_high);
}

/* All channels of one pixel. corner: what the taps count from; filter: taps of the whole kernel. */
static void pixel(const int16_t *corner, int16_t *output, const tap *taps, int32_t count, int32_t filter,
                  int32_t channels, const tinyet_conv2d_s16_quant *q) {
  const tap *const end = taps + count;
  const TINYET_ROM int8_t *weights = q->weights;
  int32_t c = 0;
  for (; c + 4 <= channels; c += 4) {
    quad s = {{0, 0, 0, 0}};
    for (const tap *t = taps; t != end; t++) {
      add_tap(&s, corner + t->input, weights + t->weight);
    }
    output[c] = finish(s.sum[0], c, q);
    output[c + 1] = finish(s.sum[1], c + 1, q);
    output[c + 2] = finish(s.sum[2], c + 2, q);
    output[c + 3] = finish(s.sum[3], c + 3, q);
    corner += 4;
    weights += 4 * filter;
  }
  for (; c < channels; c++) {
    int32_t sum = 0;
    for (const tap *t = taps; t != end; t++) {
      sum += (int32_t)corner[t->input] * weights[t->weight];
    }
    output[c] = finish(sum, c, q);
    corner++;
    weights++;
  }
}

void tinyet_depthwise_s16(const int16_t *input, int16_t *output, void *scratch,
                          const tinyet_conv2d_s16_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t filter = s->kernel_h * s->kernel_w, channels = s->in_c;
  tap *const inside = (tap *)scratch, *const border = inside + filter;
  for (int32_t i = 0, t = 0; i < s->kernel_h; i++) {
    for (int32_t j = 0; j < s->kernel_w; j++, t++) {
      inside[t].input = (i * s->dilation_h * s->in_w + j * s->dilation_w) * channels;
      inside[t].weight = 4 * t;
    }
  }
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t out_y = 0; out_y < s->out_h; out_y++) {
      const int32_t top = out_y * s->stride_h - s->pad_top;
      const tinyet_span rows = tinyet_span_inside(top, s->kernel_h, s->dilation_h, s->in_h);
      for (int32_t out_x = 0; out_x < s->out_w; out_x++) {
        const int32_t left = out_x * s->stride_w - s->pad_left;
        const tinyet_span columns = tinyet_span_inside(left, s->kernel_w, s->dilation_w, s->in_w);
        if (rows.count == s->kernel_h && columns.count == s->kernel_w) {
          pixel(input + (top * s->in_w + left) * channels, output, inside, filter, filter, channels, &params->quant);
        } else {
          tap *next = border;
          for (int32_t i = 0; i < rows.count; i++) {
            const int32_t y = rows.start + i * s->dilation_h, row = (rows.first + i) * s->kernel_w + columns.first;
            for (int32_t j = 0; j < columns.count; j++) {
              next->input = (y * s->in_w + columns.start + j * s->dilation_w) * channels;
              next->weight = 4 * (row + j);
              next++;
            }
          }
          pixel(input, output, border, (int32_t)(next - border), filter, channels, &params->quant);
        }
        output += channels;
      }
    }
    input += s->in_h * s->in_w * channels;
  }
}
