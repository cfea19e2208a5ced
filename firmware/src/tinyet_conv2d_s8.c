/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d.h"
#include "tinyet_pairs.h"

/* Both kernels here copy two pixels' patches to scratch as int16_t, interleaved in pairs: x0 x1 y0 y1 x2 x3 y2 y3 ... Once
 * there they serve all channels. Weights come as bytes a0 b0 a1 b1 of two channels, so that one load of weights and one of
 * values feed eight products. */

/* Position of element k of pixel 0 in a patch, in halves; pixel 1 is two halves further. */
static inline int32_t half_of(int32_t k) { return (k >> 1) * 4 + (k & 1); }

/* Elements first ... first + count - 1 of a patch. */
static void put(int16_t *patch, int32_t first, const int8_t *from, int32_t count) {
  int32_t k = first;
  const int32_t end = first + count;
  if ((k & 1) != 0 && k < end) {
    patch[half_of(k++)] = *from++;
  }
  int16_t *out = patch + half_of(k);
  for (; k + 4 <= end; k += 4) {
#if TINYET_HAS_PAIRS
    const uint32_t word = tinyet_load4(from);
    const int32_t even = tinyet_even_bytes(word), odd = tinyet_odd_bytes(word);
    *(tinyet_pair *)out = tinyet_both_low(even, odd);
    *(tinyet_pair *)(out + 4) = tinyet_both_high(even, odd);
#else
    out[0] = from[0], out[1] = from[1], out[4] = from[2], out[5] = from[3];
#endif
    from += 4;
    out += 8;
  }
  for (; k < end; k++) {
    patch[half_of(k)] = *from++;
  }
}

static void put_value(int16_t *patch, int32_t first, int32_t value, int32_t count) {
  for (int32_t k = first; k < first + count; k++) {
    patch[half_of(k)] = (int16_t)value;
  }
}

/* `steps` pairs for two pixels and two channels. */
static inline const int8_t *dot_2x2(const int8_t *w, const int16_t *patch, int32_t steps, int32_t sums[4]) {
  int32_t ax = sums[0], ay = sums[1], bx = sums[2], by = sums[3];
#if TINYET_HAS_PAIRS
  const tinyet_pair *p = (const tinyet_pair *)patch;
#define STEP(i)                                                            \
  do {                                                                     \
    const int32_t x = p[2 * (i)], y = p[2 * (i) + 1];                      \
    const uint32_t word = tinyet_load4(w + 4 * (i));                       \
    const int32_t a = tinyet_even_bytes(word), b = tinyet_odd_bytes(word); \
    ax = tinyet_mac_pairs(a, x, ax), ay = tinyet_mac_pairs(a, y, ay);      \
    bx = tinyet_mac_pairs(b, x, bx), by = tinyet_mac_pairs(b, y, by);      \
  } while (0)
  for (; steps >= 4; steps -= 4) {
    STEP(0);
    STEP(1);
    STEP(2);
    STEP(3);
    p += 8;
    w += 16;
  }
  for (; steps > 0; steps--) {
    STEP(0);
    p += 2;
    w += 4;
  }
#undef STEP
#else
  for (; steps > 0; steps--) {
    int32_t x = patch[0], y = patch[2], a = w[0], b = w[1];
    ax += a * x, ay += a * y, bx += b * x, by += b * y;
    x = patch[1], y = patch[3], a = w[2], b = w[3];
    ax += a * x, ay += a * y, bx += b * x, by += b * y;
    patch += 4;
    w += 4;
  }
#endif
  sums[0] = ax, sums[1] = ay, sums[2] = bx, sums[3] = by;
  return w;
}

/* Channels first ... first + count - 1 of two pixels; both outputs may be the same. */
static void two_pixels(const int16_t *patch, const int8_t *w, int8_t *out_x, int8_t *out_y, int32_t steps,
                       int32_t first, int32_t count, const tinyet_conv2d_s8_quant *q) {
  const int32_t zero_point = q->out_zero_point, low = q->clamp_low, high = q->clamp_high;
  const int32_t end = first + count;
  for (int32_t c = first; c < end; c += 2) {
    const int32_t d = c + 1 < end ? c + 1 : c; /* an odd last channel has zeros for a partner */
    int32_t sums[4] = {q->bias[c], q->bias[c], q->bias[d], q->bias[d]};
    w = dot_2x2(w, patch, steps, sums);
    if (d != c) {
      const int32_t multiplier = q->multiplier[d], form = q->shift[d];
      const int32_t x = tinyet_requantize_form(sums[2], multiplier, form, zero_point);
      const int32_t y = tinyet_requantize_form(sums[3], multiplier, form, zero_point);
      out_x[d] = (int8_t)tinyet_clamp(x, low, high);
      out_y[d] = (int8_t)tinyet_clamp(y, low, high);
    }
    const int32_t multiplier = q->multiplier[c], form = q->shift[c];
    const int32_t x = tinyet_requantize_form(sums[0], multiplier, form, zero_point);
    const int32_t y = tinyet_requantize_form(sums[1], multiplier, form, zero_point);
    out_x[c] = (int8_t)tinyet_clamp(x, low, high);
    out_y[c] = (int8_t)tinyet_clamp(y, low, high);
  }
}

/* One pixel's patch, in the order of the weights; taps outside the image read as the zero point. */
static void gather(const int8_t *image, int16_t *patch, int32_t out_y, int32_t out_x, int32_t first_c, int32_t count,
                   const tinyet_conv2d_shape *s, int32_t zero_point) {
  const int32_t top = out_y * s->stride_h - s->pad_top, left = out_x * s->stride_w - s->pad_left;
  const int32_t whole = s->dilation_w == 1 && count == s->in_c && left >= 0 && left + s->kernel_w <= s->in_w ? 1 : 0;
  int32_t k = 0;
  for (int32_t i = 0; i < s->kernel_h; i++) {
    const int32_t y = top + i * s->dilation_h;
    const int32_t row = s->kernel_w * count;
    if (y < 0 || y >= s->in_h) {
      put_value(patch, k, zero_point, row);
      k += row;
    } else if (whole != 0) {
      put(patch, k, image + (y * s->in_w + left) * count, row);
      k += row;
    } else {
      for (int32_t j = 0; j < s->kernel_w; j++) {
        const int32_t x = left + j * s->dilation_w;
        if (x < 0 || x >= s->in_w) {
          put_value(patch, k, zero_point, count);
        } else {
          put(patch, k, image + (y * s->in_w + x) * s->in_c + first_c, count);
        }
        k += count;
      }
    }
  }
}

void tinyet_conv2d_s8(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const tinyet_conv2d_s8_quant *const q = &params->quant;
  const int32_t in_count = s->in_c / s->groups, out_count = s->out_c / s->groups;
  const int32_t depth = s->kernel_h * s->kernel_w * in_count;
  const int32_t steps = (depth + 1) / 2, group_bytes = (out_count + 1) / 2 * steps * 4;
  const int32_t pixels = s->out_h * s->out_w;
  int16_t *const patch = (int16_t *)scratch;
  memset(scratch, 0, (size_t)(8 * steps));
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t g = 0; g < s->groups; g++) {
      int32_t row = 0, column = 0;
      for (int32_t pixel = 0; pixel < pixels; pixel += 2) {
        int8_t *const out_x = output + pixel * s->out_c;
        int8_t *out_y = out_x;
        gather(input, patch, row, column, g * in_count, in_count, s, q->in_zero_point);
        if (pixel + 1 < pixels) {
          out_y += s->out_c;
          if (++column == s->out_w) {
            column = 0, row++;
          }
        } /* else the second pixel is the first once more */
        gather(input, patch + 2, row, column, g * in_count, in_count, s, q->in_zero_point);
        if (++column == s->out_w) {
          column = 0, row++;
        }
        two_pixels(patch, q->weights + g * group_bytes, out_x, out_y, steps, g * out_count, out_count, q);
      }
    }
    input += s->in_h * s->in_w * s->in_c;
    output += pixels * s->out_c;
  }
}

void tinyet_conv2d_1x1_s8(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t pixels = s->batch * s->out_h * s->out_w, steps = (s->in_c + 1) / 2;
  int16_t *const patch = (int16_t *)scratch;
  memset(scratch, 0, (size_t)(8 * steps));
  for (int32_t pixel = 0; pixel < pixels; pixel += 2) {
    const int32_t next = pixel + 1 < pixels ? 1 : 0;
    put(patch, 0, input, s->in_c);
    put(patch + 2, 0, input + next * s->in_c, s->in_c);
    two_pixels(patch, params->quant.weights, output, output + next * s->out_c, steps, 0, s->out_c, &params->quant);
    input += 2 * s->in_c;
    output += 2 * s->out_c;
  }
}
