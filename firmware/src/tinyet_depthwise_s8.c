/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_depthwise.h"
#include "tinyet_pairs.h"

/* Four channels of one output pixel at a time stay in registers while the taps are walked. */

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
        add_tap(&s, *offset == TINYET_OUTSIDE ? outside : corner + *offset, w);
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
      sum += (*offset == TINYET_OUTSIDE ? *outside : corner[*offset + lane]) * *lane_w;
      lane_w += 4;
    }
    FINISH(sum, c);
  }
#undef FINISH
}

void tinyet_depthwise_s8(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params) {
  tinyet_depthwise_walk(input, output, scratch, params, pixel);
}
