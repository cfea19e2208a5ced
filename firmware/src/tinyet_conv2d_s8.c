/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tinyet_conv2d.h"

/* The multiply loop of every int8 convolution: `depth` products for two pixels and two channels at once, so that four
 * loads feed four multiply-accumulates. Offsets are in the bias already. */
static inline void dot_2x2(const int8_t *TINYET_RESTRICT a, const int8_t *TINYET_RESTRICT b,
                           const int8_t *TINYET_RESTRICT x, const int8_t *TINYET_RESTRICT y, int32_t depth,
                           int32_t sums[4]) {
  int32_t ax = sums[0], bx = sums[1], ay = sums[2], by = sums[3];
  const int8_t *const end = a + depth;
  const int8_t *const end4 = a + (depth & ~(int32_t)3);
#define STEP(i)                                         \
  do {                                                  \
    const int32_t wa = a[i], wb = b[i];                 \
    const int32_t vx = x[i], vy = y[i];                 \
    ax += wa * vx, bx += wb * vx, ay += wa * vy, by += wb * vy; \
  } while (0)
  while (a != end4) {
    STEP(0);
    STEP(1);
    STEP(2);
    STEP(3);
    a += 4, b += 4, x += 4, y += 4;
  }
  while (a != end) {
    STEP(0);
    a++, b++, x++, y++;
  }
#undef STEP
  sums[0] = ax, sums[1] = bx, sums[2] = ay, sums[3] = by;
}

static inline int8_t finish(int32_t acc, int32_t channel, const tinyet_conv2d_s8_quant *q) {
  const int32_t value = tinyet_requantize(acc, q->multiplier[channel], q->shift[channel]) + q->out_zero_point;
  return (int8_t)tinyet_clamp(value, q->clamp_low, q->clamp_high);
}

/* Channels first ... first + count - 1 for two pixels (x, y); y may be the same pixel as x. */
static void two_pixels(const int8_t *x, const int8_t *y, int8_t *out_x, int8_t *out_y, int32_t depth, int32_t first,
                       int32_t count, const tinyet_conv2d_s8_quant *q) {
  const int8_t *w = q->weights + first * depth;
  const int32_t end = first + count;
  for (int32_t c = first; c < end; c += 2) {
    /* An odd last channel is computed twice rather than by a loop of its own. */
    const int32_t d = c + 1 < end ? c + 1 : c;
    int32_t sums[4] = {q->bias[c], q->bias[d], q->bias[c], q->bias[d]};
    dot_2x2(w, w + (d - c) * depth, x, y, depth, sums);
    out_x[c] = finish(sums[0], c, q);
    out_y[c] = finish(sums[2], c, q);
    out_x[d] = finish(sums[1], d, q);
    out_y[d] = finish(sums[3], d, q);
    w += 2 * depth;
  }
}

/* One patch, in the order of the weights; taps outside the image read as the zero point. */
static void gather(const int8_t *image, int8_t *patch, int32_t out_y, int32_t out_x, int32_t first_c, int32_t count,
                   const tinyet_conv2d_shape *s, int32_t zero_point) {
  const int32_t top = out_y * s->stride_h - s->pad_top, left = out_x * s->stride_w - s->pad_left;
  for (int32_t i = 0; i < s->kernel_h; i++) {
    const int32_t y = top + i * s->dilation_h;
    if (y < 0 || y >= s->in_h) {
      memset(patch, zero_point, (size_t)(s->kernel_w * count));
      patch += s->kernel_w * count;
      continue;
    }
    const int8_t *row = image + y * s->in_w * s->in_c + first_c;
    if (s->dilation_w == 1 && count == s->in_c && left >= 0 && left + s->kernel_w <= s->in_w) {
      memcpy(patch, row + left * count, (size_t)(s->kernel_w * count));
      patch += s->kernel_w * count;
      continue;
    }
    for (int32_t j = 0; j < s->kernel_w; j++) {
      const int32_t x = left + j * s->dilation_w;
      if (x < 0 || x >= s->in_w) {
        memset(patch, zero_point, (size_t)count);
      } else {
        memcpy(patch, row + x * s->in_c, (size_t)count);
      }
      patch += count;
    }
  }
}

void tinyet_conv2d_s8(const int8_t *input, int8_t *output, void *scratch, const tinyet_conv2d_s8_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const tinyet_conv2d_s8_quant *const q = &params->quant;
  const int32_t in_count = s->in_c / s->groups, out_count = s->out_c / s->groups;
  const int32_t depth = s->kernel_h * s->kernel_w * in_count;
  const int32_t pixels = s->out_h * s->out_w;
  int8_t *const patch_x = (int8_t *)scratch;
  int8_t *const patch_y = patch_x + depth;
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t g = 0; g < s->groups; g++) {
      int32_t row = 0, column = 0;
      for (int32_t pixel = 0; pixel < pixels; pixel += 2) {
        gather(input, patch_x, row, column, g * in_count, in_count, s, q->in_zero_point);
        int8_t *const out_x = output + pixel * s->out_c;
        if (++column == s->out_w) {
          column = 0, row++;
        }
        if (pixel + 1 < pixels) {
          gather(input, patch_y, row, column, g * in_count, in_count, s, q->in_zero_point);
          if (++column == s->out_w) {
            column = 0, row++;
          }
          two_pixels(patch_x, patch_y, out_x, out_x + s->out_c, depth, g * out_count, out_count, q);
        } else {
          two_pixels(patch_x, patch_x, out_x, out_x, depth, g * out_count, out_count, q);
        }
      }
    }
    input += s->in_h * s->in_w * s->in_c;
    output += pixels * s->out_c;
  }
}

void tinyet_conv2d_1x1_s8(const int8_t *input, int8_t *output, const tinyet_conv2d_s8_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t pixels = s->batch * s->out_h * s->out_w;
  for (int32_t pixel = 0; pixel < pixels; pixel += 2) {
    const int32_t next = pixel + 1 < pixels ? 1 : 0;
    two_pixels(input, input + next * s->in_c, output, output + next * s->out_c, s->in_c, 0, s->out_c, &params->quant);
    input += 2 * s->in_c;
    output += 2 * s->out_c;
  }
}
