/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_byte_products.h"

/* The sum of the products of nine weights, which have signs, with three rows of inputs, so many bytes from end to begin. */
static inline int32_t products(const uint8_t *x, const TINYET_ROM int8_t *w, tinyet_extent turn) {
#ifdef __AVR__
  uint8_t value, weight;
  const uint8_t zero = 0u;
  tinyet_window_sum sum = 0;
/* A product's sign is that of the weight: below zero, one is taken off the upper byte. */
#define TINYET_BYTES_SIGNED            \
  "ld %[x], X+\n"                      \
  "lpm %[w], Z+\n"                     \
  "mulsu %[w], %[x]\n"                 \
  "add %A[sum], r0\n"                  \
  "adc %B[sum], r1\n"                  \
  "adc %C[sum], %[zero]\n"             \
  "sbrc r1, 7\n"                       \
  "dec %C[sum]\n"
#define TINYET_BYTES_TURN "add r26, %A[turn]\n" "adc r27, %B[turn]\n"
  __asm__ volatile(
      TINYET_BYTES_SIGNED TINYET_BYTES_SIGNED TINYET_BYTES_SIGNED TINYET_BYTES_TURN
          TINYET_BYTES_SIGNED TINYET_BYTES_SIGNED TINYET_BYTES_SIGNED TINYET_BYTES_TURN
              TINYET_BYTES_SIGNED TINYET_BYTES_SIGNED TINYET_BYTES_SIGNED
      "clr __zero_reg__\n"
      : "+x"(x), "+z"(w), [x] "=&a"(value), [w] "=&a"(weight), [sum] "+&r"(sum)
      : [zero] "r"(zero), [turn] "r"(turn)
      : "memory", "r0");
#undef TINYET_BYTES_SIGNED
#undef TINYET_BYTES_TURN
  return sum;
#else
  int32_t sum = 0;
  for (int32_t i = 0; i < 3; i++) {
    sum += x[0] * w[0] + x[1] * w[1] + x[2] * w[2];
    x += 3 + turn;
    w += 3;
  }
  return sum;
#endif
}

/* A channel's image with its borders, plus 128: as many rows and columns as windows reach. */
static void plane_of(uint8_t *plane, const int8_t *image, tinyet_extent rows, tinyet_extent columns,
                     const tinyet_conv2d_shape *s, uint8_t padding) {
  const tinyet_extent channels = TINYET_EXTENT(s->in_c), in_w = TINYET_EXTENT(s->in_w), in_h = TINYET_EXTENT(s->in_h);
  const tinyet_extent before = TINYET_EXTENT(s->pad_left), above = TINYET_EXTENT(s->pad_top);
  const tinyet_extent right = columns - before, bottom = rows - above;
  const tinyet_extent width = in_w < right ? in_w : right, height = in_h < bottom ? in_h : bottom;
  memset(plane, padding, (size_t)(rows * columns));
  plane += above * columns + before;
  for (tinyet_extent y = height; y > 0; y--) {
    const int8_t *from = image;
    uint8_t *to = plane;
    for (tinyet_extent x = width; x > 0; x--, from += channels) {
      *to++ = (uint8_t)((uint8_t)*from ^ 0x80u);
    }
    plane += columns;
    image += in_w * channels;
  }
}

void tinyet_depthwise_s8_bytes_3x3(const int8_t *input, int8_t *output, void *scratch,
                                   const tinyet_depthwise_s8_bytes_3x3_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const tinyet_packed_words *const words = &params->words;
  const tinyet_extent out_h = TINYET_EXTENT(s->out_h), out_w = TINYET_EXTENT(s->out_w);
  const tinyet_extent stride = TINYET_EXTENT(s->stride_w), channels = TINYET_EXTENT(s->in_c);
  const tinyet_extent rows = TINYET_EXTENT((s->out_h - 1) * s->stride_h + 3);
  const tinyet_extent columns = TINYET_EXTENT((s->out_w - 1) * s->stride_w + 3);
  const tinyet_extent turn = TINYET_EXTENT(s->stride_h * columns - out_w * stride);
  const uint8_t step = words->two_sided != 0 ? 7u : 5u;
  for (int32_t n = s->batch; n > 0; n--) {
    const TINYET_ROM uint32_t *f = words->stream;
    const TINYET_ROM int8_t *w = params->weights;
    for (tinyet_extent c = 0; c < channels; c++) {
      plane_of((uint8_t *)scratch, input + c, rows, columns, s, (uint8_t)words->padding);
      const uint8_t *x = (const uint8_t *)scratch;
      int8_t *out = output + c;
      const uint32_t start = f[0];
      for (tinyet_extent i = out_h; i > 0; i--, x += turn) {
        for (tinyet_extent j = out_w; j > 0; j--, x += stride, out += channels) {
          const uint32_t sum = start + (uint32_t)products(x, w, columns - 3);
          *out = tinyet_bytes_output(sum, f + 1, words->two_sided != 0, (int8_t)words->clamp_low,
                                         (int8_t)words->clamp_high);
        }
      }
      f += step;
      w += 9;
    }
    input += s->in_h * s->in_w * s->in_c;
    output += s->out_h * s->out_w * s->in_c;
  }
}
