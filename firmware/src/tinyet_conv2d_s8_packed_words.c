/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_packed_words.h"

static void gather(uint8_t *patch, const int8_t *image, int32_t top, int32_t left, const tinyet_conv2d_shape *s,
                   uint8_t padding) {
  const int32_t row = s->kernel_w * s->in_c;
  const int32_t whole = s->dilation_w == 1 && left >= 0 && left + s->kernel_w <= s->in_w ? 1 : 0;
  for (int32_t i = 0; i < s->kernel_h; i++) {
    const int32_t y = top + i * s->dilation_h;
    if (y < 0 || y >= s->in_h) {
      memset(patch, padding, (size_t)row);
      patch += row;
    } else if (whole != 0) {
      tinyet_packed_inputs(patch, image + (y * s->in_w + left) * s->in_c, row);
      patch += row;
    } else {
      for (int32_t j = 0; j < s->kernel_w; j++) {
        const int32_t x = left + j * s->dilation_w;
        if (x < 0 || x >= s->in_w) {
          memset(patch, padding, (size_t)s->in_c);
        } else {
          tinyet_packed_inputs(patch, image + (y * s->in_w + x) * s->in_c, s->in_c);
        }
        patch += s->in_c;
      }
    }
  }
}

void tinyet_conv2d_s8_packed_words(const int8_t *input, int8_t *output, void *scratch,
                                   const tinyet_conv2d_s8_packed_words_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  uint8_t *const patch = (uint8_t *)scratch;
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t out_y = 0; out_y < s->out_h; out_y++) {
      const int32_t top = out_y * s->stride_h - s->pad_top;
      for (int32_t out_x = 0; out_x < s->out_w; out_x++) {
        gather(patch, input, top, out_x * s->stride_w - s->pad_left, s, (uint8_t)params->words.padding);
        tinyet_packed_pixel(patch, output, &params->words);
        output += s->out_c;
      }
    }
    input += s->in_h * s->in_w * s->in_c;
  }
}

void tinyet_conv2d_1x1_s8_packed_words(const int8_t *input, int8_t *output, void *scratch,
                                       const tinyet_conv2d_s8_packed_words_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  uint8_t *const patch = (uint8_t *)scratch;
  for (int32_t pixels = s->batch * s->out_h * s->out_w; pixels > 0; pixels--) {
    tinyet_packed_inputs(patch, input, s->in_c);
    tinyet_packed_pixel(patch, output, &params->words);
    input += s->in_c;
    output += s->out_c;
  }
}
