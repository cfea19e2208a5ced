/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_depthwise.h"
#include "tinyet_int4.h"

/* As tinyet_depthwise_s8.c, but two taps at a time: the four bytes of a word hold the weights of four channels, those of one
 * tap in the low halves and those of the next one in the high halves. */

/* Two taps of four channels. */
static inline void add_taps(tinyet_sums4 *q, const int8_t *x, const int8_t *y, const TINYET_ROM int8_t *w) {
#if TINYET_HAS_SIMD32
  const uint32_t word = tinyet_load4(w), xs = tinyet_load4(x), ys = tinyet_load4(y);
  const uint32_t x_weights = tinyet_low_nibbles(word), y_weights = tinyet_high_nibbles(word);
  const int32_t x_even = tinyet_even_bytes(xs), x_w_even = tinyet_even_bytes(x_weights);
  const int32_t x_odd = tinyet_odd_bytes(xs), x_w_odd = tinyet_odd_bytes(x_weights);
  const int32_t y_even = tinyet_even_bytes(ys), y_w_even = tinyet_even_bytes(y_weights);
  const int32_t y_odd = tinyet_odd_bytes(ys), y_w_odd = tinyet_odd_bytes(y_weights);
  q->sum[0] = tinyet_mac_low(y_even, y_w_even, tinyet_mac_low(x_even, x_w_even, q->sum[0]));
  q->sum[1] = tinyet_mac_low(y_odd, y_w_odd, tinyet_mac_low(x_odd, x_w_odd, q->sum[1]));
  q->sum[2] = tinyet_mac_high(y_even, y_w_even, tinyet_mac_high(x_even, x_w_even, q->sum[2]));
  q->sum[3] = tinyet_mac_high(y_odd, y_w_odd, tinyet_mac_high(x_odd, x_w_odd, q->sum[3]));
#else
  q->sum[0] += x[0] * tinyet_low_nibble(w[0]) + y[0] * tinyet_high_nibble(w[0]);
  q->sum[1] += x[1] * tinyet_low_nibble(w[1]) + y[1] * tinyet_high_nibble(w[1]);
  q->sum[2] += x[2] * tinyet_low_nibble(w[2]) + y[2] * tinyet_high_nibble(w[2]);
  q->sum[3] += x[3] * tinyet_low_nibble(w[3]) + y[3] * tinyet_high_nibble(w[3]);
#endif
}

static inline const int8_t *place(const int8_t *corner, int32_t offset, const int8_t *outside) {
  return outside != NULL && offset == TINYET_OUTSIDE ? outside : corner + offset;
}

static inline void pixel(const int8_t *corner, void *outputs, int32_t at, const int32_t *offsets, int32_t taps,
                         int32_t channels, const int8_t *outside, const void *layer) {
  const tinyet_conv2d_s8_quant *const q = (const tinyet_conv2d_s8_quant *)layer;
  int8_t *const output = (int8_t *)outputs + at;
  /* Copies: a store of an output could change *q, as far as the compiler knows. */
  const int32_t zero_point = q->out_zero_point, low = q->clamp_low, high = q->clamp_high;
  const TINYET_ROM int32_t *const bias = q->bias, *const multiplier = q->multiplier;
  const TINYET_ROM int8_t *const form = q->shift;
  const TINYET_ROM int8_t *w = q->weights;
  const int32_t *const last = offsets + taps - 1;
  int32_t c = 0;
#define FINISH(sum, i)              \
  output[i] = (int8_t)tinyet_clamp( \
      tinyet_requantize_form(bias[i] + tinyet_nibble_sum(sum), multiplier[i], form[i], zero_point), low, high)
  for (; c + 4 <= channels; c += 4) {
    tinyet_sums4 s = {{0, 0, 0, 0}};
    const int32_t *offset = offsets;
    for (; offset < last; offset += 2) {
      add_taps(&s, place(corner, offset[0], outside), place(corner, offset[1], outside), w);
      w += 4;
    }
    if (offset == last) { /* an odd last tap has weights of zero for a partner */
      const int8_t *const x = place(corner, *offset, outside);
      add_taps(&s, x, x, w);
      w += 4;
    }
    corner += 4;
    FINISH(s.sum[0], c);
    FINISH(s.sum[1], c + 1);
    FINISH(s.sum[2], c + 2);
    FINISH(s.sum[3], c + 3);
  }
  for (int32_t lane = 0; c < channels; c++, lane++) {
    int32_t sum = 0;
    const TINYET_ROM int8_t *byte = w + lane;
    for (const int32_t *offset = offsets; offset <= last; offset += 2) {
      sum += *(*offset == TINYET_OUTSIDE ? outside : corner + *offset + lane) * tinyet_low_nibble(*byte);
      if (offset != last) {
        const int32_t next = offset[1];
        sum += *(next == TINYET_OUTSIDE ? outside : corner + next + lane) * tinyet_high_nibble(*byte);
      }
      byte += 4;
    }
    FINISH(sum, c);
  }
#undef FINISH
}

void tinyet_depthwise_s8_w4(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params) {
  const tinyet_conv2d_s8_quant *const q = &params->quant;
  tinyet_depthwise_walk(input, output, scratch, &params->shape, (int8_t)q->in_zero_point, q, pixel);
}
