/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_byte_products.h"

enum { PIXELS = TINYET_BYTES_PIXELS };

/* What the window of one pixel sees, plus 128, four bytes from tap to tap; gives the sum. */
static uint32_t gather(uint8_t *patch, const int8_t *image, tinyet_extent top, tinyet_extent left,
                       const tinyet_conv2d_shape *s, uint8_t padding) {
  const tinyet_extent in_h = TINYET_EXTENT(s->in_h), in_w = TINYET_EXTENT(s->in_w), in_c = TINYET_EXTENT(s->in_c);
  const tinyet_extent kernel_w = TINYET_EXTENT(s->kernel_w);
  const tinyet_extent step_h = TINYET_EXTENT(s->dilation_h), step_w = TINYET_EXTENT(s->dilation_w);
  uint32_t sum = 0u;
  for (tinyet_extent i = TINYET_EXTENT(s->kernel_h), y = top; i > 0; i--, y += step_h) {
    for (tinyet_extent j = kernel_w, x = left; j > 0; j--, x += step_w) {
      if (y < 0 || y >= in_h || x < 0 || x >= in_w) {
        for (tinyet_extent c = in_c; c > 0; c--, patch += PIXELS) {
          *patch = padding;
          sum += padding;
        }
      } else {
        const int8_t *from = image + (y * in_w + x) * in_c;
        for (tinyet_extent c = in_c; c > 0; c--, patch += PIXELS) {
          const uint8_t value = (uint8_t)((uint8_t)*from++ ^ 0x80u);
          *patch = value;
          sum += value;
        }
      }
    }
  }
  return sum;
}

/* All channels of `count` pixels of the patch. less: of each pixel what the weights' 128 have added to its sums. */
static void outputs(const uint8_t *patch, const uint32_t *less, int8_t *output, uint8_t count, tinyet_extent taps,
                    const tinyet_conv2d_s8_bytes_4x1_params *params) {
  const tinyet_packed_words *const words = &params->words;
  const tinyet_extent out_c = TINYET_EXTENT(words->out_c);
  const uint8_t step = words->two_sided != 0 ? 7u : 5u;
  const TINYET_ROM uint32_t *f = words->stream;
  const TINYET_ROM uint8_t *w = params->weights;
  for (tinyet_extent c = out_c; c > 0; c--) {
    const uint32_t start = f[0];
    uint32_t sums[PIXELS] = {start - less[0], start - less[1], start - less[2], start - less[3]};
    tinyet_bytes_4x1(patch, w, taps, sums);
    int8_t *out = output++;
    for (uint8_t i = 0; i < count; i++, out += out_c) {
      *out = tinyet_bytes_output(sums[i], f + 1, words);
    }
    f += step;
    w += taps;
  }
}

void tinyet_conv2d_s8_bytes_4x1(const int8_t *input, int8_t *output, void *scratch,
                                const tinyet_conv2d_s8_bytes_4x1_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const tinyet_extent out_w = TINYET_EXTENT(s->out_w), out_c = TINYET_EXTENT(s->out_c);
  const tinyet_extent taps = TINYET_EXTENT(s->kernel_h * s->kernel_w * s->in_c);
  const tinyet_extent stride_h = TINYET_EXTENT(s->stride_h), stride_w = TINYET_EXTENT(s->stride_w);
  const tinyet_extent first_left = TINYET_EXTENT(-s->pad_left);
  const uint8_t padding = (uint8_t)params->words.padding;
  uint8_t *const patch = (uint8_t *)scratch;
  uint32_t less[PIXELS] = {0u, 0u, 0u, 0u};
  memset(scratch, 0, (size_t)(PIXELS * taps));
  for (int32_t n = s->batch; n > 0; n--) {
    tinyet_extent top = TINYET_EXTENT(-s->pad_top), left = first_left, column = out_w;
    uint8_t count = 0u;
    for (tinyet_extent pixel = TINYET_EXTENT(s->out_h * s->out_w); pixel > 0; pixel--) {
      less[count] = gather(patch + count, input, top, left, s, padding) << 7;
      left += stride_w;
      if (--column == 0) {
        column = out_w, left = first_left, top += stride_h;
      }
      if (++count == PIXELS || pixel == 1) {
        outputs(patch, less, output, count, taps, params);
        output += count * out_c;
        count = 0u;
      }
    }
    input += s->in_h * s->in_w * s->in_c;
  }
}
