/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_packed_dsp.h"

/* memcpy for few bytes from any address to any. */
TINYET_DSP_INLINE void copy(int8_t *to, const int8_t *from, int32_t count) {
  for (; count >= 4; count -= 4, from += 4, to += 4) {
    memcpy(to, from, 4);
  }
  for (; count > 0; count--) {
    TINYET_DSP_UNKNOWN(count); /* or it becomes a call of memcpy after all */
    *to++ = *from++;
  }
}

/* What a kernel row sees of the image from column `left` on, tap by tap. What lies outside stays as it is. */
static __attribute__((noinline)) void gather(int8_t *to, const int8_t *row, int32_t left,
                                             const tinyet_conv2d_s8_packed_3x2_dsp_params *s) {
  for (int32_t kx = s->kernel_w; kx != 0; kx--, left += s->dilation_w, to += s->in_c) {
    if ((uint32_t)left < (uint32_t)s->in_w) {
      copy(to, row + left * s->in_pixel_stride, s->in_c);
    }
  }
}

/* What all pixels have in common. */
typedef struct {
  const tinyet_conv2d_s8_packed_3x2_dsp_params *s;
  int8_t *edge;  /* room for a kernel row, in whole words, and for one more */
  int32_t count; /* of values in a kernel row */
  int32_t words; /* of a kernel row, of all three pixels */
  int32_t line;  /* bytes of a row of the image */
  uint32_t blank; /* four bytes of what padding reads as */
} window;

/* All that the kernel sees for one pixel. */
TINYET_DSP_INLINE void pixel(uint32_t *to, const int8_t *input, int32_t top, int32_t left, const window v) {
  const int32_t count = v.count;
  const int whole = left >= 0 && left + v.s->kernel_w <= v.s->in_w && v.s->dilation_w == 1;
  if (!whole) {
    uint32_t *const edge = (uint32_t *)(void *)v.edge;
    for (int32_t i = count >> 2; i >= 0; i--) {
      TINYET_DSP_UNKNOWN(i); /* or it becomes a call of memset */
      edge[i] = v.blank;
    }
  }
  const int32_t down = v.s->dilation_h * v.line;
  for (int32_t left_over = v.s->kernel_h, rows = 1; left_over != 0; left_over -= rows, rows = 1) {
    if ((uint32_t)top >= (uint32_t)v.s->in_h) {
      const uint32_t blank = tinyet_both_dsp(v.s->in_zero_point);
      for (int32_t words = v.words; words != 0; words -= 3, to += 3) {
        TINYET_DSP_UNKNOWN(words); /* or where that ends is computed in advance, which takes longer */
        *to = blank;
      }
      top += v.s->dilation_h;
      continue;
    }
    const int8_t *const row = input + top * v.line, *from = v.edge;
    top += v.s->dilation_h;
    if (whole) {
      from = row + left * v.s->in_pixel_stride;
      for (; rows != left_over && top < v.s->in_h; top += v.s->dilation_h) {
        rows++;
      }
    } else {
      gather(v.edge, row, left, v.s);
    }
    to = tinyet_widened_rows_3_dsp(to, from, count, rows, down - (count & ~3));
  }
}

void tinyet_conv2d_s8_packed_3x2_dsp(const int8_t *input, int8_t *output, void *scratch,
                                     const tinyet_conv2d_s8_packed_3x2_dsp_params *s) {
  const int32_t values = s->kernel_w * s->in_c;
  const int32_t words = 3 * ((values >> 2) * 2 + (((values & 3) + 1) >> 1));
  const int32_t pairs = s->kernel_h * words / 3, even = pairs + (pairs & 1);
  const int32_t count = s->out_h * s->out_w;
  uint32_t *const pixels = (uint32_t *)scratch;
  const window v = {
      s, (int8_t *)(pixels + 3 * even), values, words, s->in_w * s->in_pixel_stride,
      0x01010101u * (uint8_t)s->in_zero_point};
  tinyet_three_pixels_dsp block;
  block.pixels = pixels;
  block.steps = even / 2;
  block.step = s->out_pixel_stride;
  block.offset = s->offset;
  block.exponent = s->exponent;
  memset(pixels + 3 * even - 3, 0, 12); /* the last pair may be no input: it meets weights of zero */
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t first = 0, y = 0, x = 0; first < count; first += 3) {
      if (first > count - 3) {
        first = count - 3;
        y = first / s->out_w;
        x = first % s->out_w;
      }
      for (int32_t j = 0; j < 3; j++) {
        pixel(pixels + j, input, y * s->stride_h - s->pad_top, x * s->stride_w - s->pad_left, v);
        if (++x == s->out_w) {
          x = 0;
          y++;
        }
      }
      block.output = output + first * s->out_pixel_stride;
      block.last = block.output + (s->out_c & ~1);
      block.weights = s->weights;
      tinyet_conv2d_packed_3x2_block_dsp(&block);
      if (s->out_c % 2 != 0) {
        block.output = output + first * s->out_pixel_stride + s->out_c - 2;
        block.last = block.output + 2;
        block.weights = s->weights + s->out_c / 2 * (even + 5);
        tinyet_conv2d_packed_3x2_block_dsp(&block);
      }
    }
    input += s->in_h * s->in_w * s->in_pixel_stride;
    output += count * s->out_pixel_stride;
  }
  if (s->clamp_low > -128 || s->clamp_high < 127) {
    const int32_t between = s->out_pixel_stride - s->out_c;
    const int32_t run = between == 0 ? s->batch * count * s->out_c : s->out_c; /* bytes without a gap */
    for (int8_t *value = output - s->batch * count * s->out_pixel_stride; value != output; value += between) {
      for (const int8_t *const end = value + run; value != end; value++) {
        *value = (int8_t)tinyet_clamp(*value, s->clamp_low, s->clamp_high);
      }
    }
  }
}
