/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d.h"
#include "tinyet_pairs.h"
#include "tinyet_window.h"

/* Four channels of one output pixel at a time stay in registers while the taps are walked; where a tap reads is a list of
 * offsets, made once for all pixels whose window lies inside the image, and for each other pixel. */

enum { OUTSIDE = -1 };

typedef struct {
  int32_t sum[4];
} quad;

/* One tap of four channels. */
static inline void add_tap(quad *q, const int8_t *x, const int8_t *w) {
#if TINYET_HAS_PAIRS
  const uint32_t values = tinyet_load4(x), weights = tinyet_load4(w);
  const int32_t x_even = tinyet_even_bytes(values), w_even = tinyet_even_bytes(weights);
  const int32_t x_odd = tinyet_odd_bytes(values), w_odd = tinyet_odd_bytes(weights);
  q->sum[0] = tinyet_mac_low(x_even, w_even, q->sum[0]);
  q->sum[2] = tinyet_mac_high(x_even, w_even, q->sum[2]);
  q->sum[1] = tinyet_mac_low(x_odd, w_odd, q->sum[1]);
  q->sum[3] = tinyet_mac_high(x_odd, w_odd, q->sum[3]);
#else
  q->sum[0] += x[0] * w[0];
  q->sum[1] += x[1] * w[1];
  q->sum[2] += x[2] * w[2];
  q->sum[3] += x[3] * w[3];
#endif
}

/* All channels of one pixel. corner: what the offsets count from. outside: four channels of what a tap outside the image
 * reads, or NULL when all are inside. */
static inline void pixel(const int8_t *corner, int8_t *output, const int32_t *offsets, int32_t taps, int32_t channels,
                         const int8_t *outside, const tinyet_conv2d_s8_quant *q) {
  /* Copies: a store of an output could change *q, as far as the compiler knows. */
  const int32_t zero_point = q->out_zero_point, low = q->clamp_low, high = q->clamp_high;
  const int32_t *const bias = q->bias, *const multiplier = q->multiplier;
  const int8_t *const form = q->shift;
  const int8_t *w = q->weights;
  const int32_t *const end = offsets + taps;
  int32_t c = 0;
#define FINISH(sum, i) \
  output[i] = (int8_t)tinyet_clamp(tinyet_requantize_form(sum, multiplier[i], form[i], zero_point), low, high)
  for (; c + 4 <= channels; c += 4) {
    quad s = {{bias[c], bias[c + 1], bias[c + 2], bias[c + 3]}};
    const int32_t *offset = offsets;
    if (outside != NULL) {
      for (; offset != end; offset++) {
        add_tap(&s, *offset == OUTSIDE ? outside : corner + *offset, w);
        w += 4;
      }
    } else {
      for (; end - offset >= 3; offset += 3) {
        add_tap(&s, corner + offset[0], w);
        add_tap(&s, corner + offset[1], w + 4);
        add_tap(&s, corner + offset[2], w + 8);
        w += 12;
      }
      for (; offset != end; offset++) {
        add_tap(&s, corner + *offset, w);
        w += 4;
      }
    }
    corner += 4;
    FINISH(s.sum[0], c);
    FINISH(s.sum[1], c + 1);
    FINISH(s.sum[2], c + 2);
    FINISH(s.sum[3], c + 3);
  }
  for (int32_t lane = 0; c < channels; c++, lane++) {
    int32_t sum = bias[c];
    const int8_t *lane_w = w + lane;
    for (const int32_t *offset = offsets; offset != end; offset++) {
      sum += (*offset == OUTSIDE ? *outside : corner[*offset + lane]) * *lane_w;
      lane_w += 4;
    }
    FINISH(sum, c);
  }
#undef FINISH
}

void tinyet_depthwise_s8(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t taps = s->kernel_h * s->kernel_w, channels = s->in_c;
  const int8_t padding = (int8_t)params->quant.in_zero_point;
  const int8_t outside[4] = {padding, padding, padding, padding};
  int32_t *const inside_offsets = (int32_t *)scratch, *const border_offsets = inside_offsets + taps;
  for (int32_t i = 0, t = 0; i < s->kernel_h; i++) {
    for (int32_t j = 0; j < s->kernel_w; j++) {
      inside_offsets[t++] = (i * s->dilation_h * s->in_w + j * s->dilation_w) * channels;
    }
  }
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t out_y = 0; out_y < s->out_h; out_y++) {
      const int32_t top = out_y * s->stride_h - s->pad_top;
      const int32_t rows = tinyet_span_inside(top, s->kernel_h, s->dilation_h, s->in_h).count;
      for (int32_t out_x = 0; out_x < s->out_w; out_x++) {
        const int32_t left = out_x * s->stride_w - s->pad_left;
        const int32_t columns = tinyet_span_inside(left, s->kernel_w, s->dilation_w, s->in_w).count;
        if (rows == s->kernel_h && columns == s->kernel_w) {
          pixel(input + (top * s->in_w + left) * channels, output, inside_offsets, taps, channels, NULL,
                &params->quant);
        } else {
          int32_t *offset = border_offsets;
          for (int32_t i = 0, y = top; i < s->kernel_h; i++, y += s->dilation_h) {
            for (int32_t j = 0, x = left; j < s->kernel_w; j++, x += s->dilation_w) {
              const int32_t there = y >= 0 && y < s->in_h && x >= 0 && x < s->in_w ? 1 : 0;
              *offset++ = there != 0 ? (y * s->in_w + x) * channels : (int32_t)OUTSIDE;
            }
          }
          pixel(input, output, border_offsets, taps, channels, outside, &params->quant);
        }
        output += channels;
      }
    }
    input += s->in_h * s->in_w * channels;
  }
}
