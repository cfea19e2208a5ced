/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_packed_words.h"

/* A channel's image with its borders, plus 128: as many rows and columns as windows reach. */
static void plane_of(uint8_t *plane, const int8_t *image, int32_t rows, int32_t columns, const tinyet_conv2d_shape *s,
                     uint8_t padding) {
  const int32_t right = columns - s->pad_left, bottom = rows - s->pad_top, channels = s->in_c;
  const int32_t width = s->in_w < right ? s->in_w : right, height = s->in_h < bottom ? s->in_h : bottom;
  memset(plane, padding, (size_t)(rows * columns));
  plane += s->pad_top * columns + s->pad_left;
  uint32_t sign = 0x80u;
  __asm__("" : "+r"(sign)); /* in a register: GCC would make it anew for each value */
  for (int32_t y = 0; y < height; y++) {
    const int8_t *from = image;
    uint8_t *to = plane;
    int32_t left = width;
    for (; left >= 4; left -= 4) {
      to[0] = (uint8_t)((uint8_t)*from ^ sign);
      from += channels;
      to[1] = (uint8_t)((uint8_t)*from ^ sign);
      from += channels;
      to[2] = (uint8_t)((uint8_t)*from ^ sign);
      from += channels;
      to[3] = (uint8_t)((uint8_t)*from ^ sign);
      from += channels;
      to += 4;
    }
    for (; left > 0; left--) {
      *to++ = (uint8_t)((uint8_t)*from ^ sign);
      from += channels;
    }
    plane += columns;
    image += s->in_w * channels;
  }
}

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
typedef struct {
  int32_t rows;
  int8_t *end;      /* of the first row of outputs */
  int32_t row;      /* bytes from row to row of outputs, or of windows behind the last one of a row */
  int32_t turn;
  int32_t columns;  /* bytes from row to row of inputs */
  int32_t back;     /* bytes from the last row of a window to the next window */
  int32_t channels; /* bytes from output to output */
  int32_t right;
  uint32_t bounds; /* of outputs: high, and low in the next byte */
} plane_walk;

#define TAP(w, i) "ldrb r6, [r0, #" #i "]\n" "muls r6, " w ", r6\n" "adds r3, r3, r6\n"

/* All outputs of a channel whose sums are rounded one way. Inputs at r0, outputs at r1, the stream at r2, a sum in r3; in
 * r8 ... r12 columns, back, channels, right and where a row of outputs ends. */
__attribute__((naked, noinline)) static void one_sided_channel(const uint8_t *plane __attribute__((unused)),
                                                               int8_t *output __attribute__((unused)),
                                                               const uint32_t *stream __attribute__((unused)),
                                                               plane_walk *walk __attribute__((unused))) {
  __asm__ volatile(
      TINYET_THUMB1_ENTRY("r3, ")
      "ldr r4, [r3, #4]\n"
      "mov r12, r4\n"
      "ldr r4, [r3, #16]\n"
      "mov r8, r4\n"
      "ldr r4, [r3, #20]\n"
      "mov r9, r4\n"
      "ldr r4, [r3, #24]\n"
      "mov r10, r4\n"
      "ldr r4, [r3, #28]\n"
      "mov r11, r4\n"
      "1:\n"
      "ldmia r2!, {r3, r4, r5, r7}\n"
      TAP("r4", 0) TAP("r5", 1) TAP("r7", 2)
      "add r0, r8\n"
      "ldmia r2!, {r4, r5, r7}\n"
      TAP("r4", 0) TAP("r5", 1) TAP("r7", 2)
      "add r0, r8\n"
      "ldmia r2!, {r4, r5, r7}\n"
      TAP("r4", 0) TAP("r5", 1) TAP("r7", 2)
      "ldmia r2!, {r4, r5, r6, r7}\n" /* limit, upper, lower, offset */
      "cmp r3, r4\n"
      "bhs 3f\n"
      "mov r4, r11\n"
      TINYET_THUMB1_SCALED("r3", "r5", "r6", "r7", "r4")
      "2:\n"
      "strb r3, [r1]\n"
      "add r1, r10\n"
      "add r0, r9\n"
      "subs r2, r2, #56\n"
      "cmp r1, r12\n"
      "bne 1b\n"
      "ldr r7, [sp]\n"
      "ldr r4, [r7, #8]\n"
      "add r12, r4\n"
      "ldr r4, [r7, #12]\n"
      "add r0, r4\n"
      "ldr r4, [r7]\n"
      "subs r4, r4, #1\n"
      "str r4, [r7]\n"
      "bne 1b\n"
      TINYET_THUMB1_RETURN("r3, ")
      "3:\n" /* outside the range: the sign says which bound it is */
      "ldr r7, [sp]\n"
      "ldr r4, [r7, #32]\n"
      TINYET_THUMB1_BOUND("r3", "r4")
      "mov r3, r4\n"
      "b 2b\n");
}
#undef TAP
#endif

TINYET_TWO_PRODUCTS(rounded, const uint32_t *)

static inline __attribute__((always_inline)) void channel(const uint8_t *plane, int8_t *output, int32_t columns,
                                                          const tinyet_conv2d_shape *s, const TINYET_ROM uint32_t *w,
                                                          const tinyet_packed_words *words, int32_t two_sided) {
  const int32_t right = words->right, channels = s->in_c, stride = s->stride_w;
  const int8_t low = (int8_t)words->clamp_low, high = (int8_t)words->clamp_high;
  const int32_t turn = s->stride_h * columns - s->out_w * stride, out_w = s->out_w;
  /* Copies, because a store of an output could change what is read, as far as the compiler knows. */
  const uint32_t start = w[0], a = w[1], b = w[2], c = w[3], d = w[4], e = w[5], f = w[6], g = w[7], h = w[8], i = w[9];
  uint32_t rounding[6];
  tinyet_copy_rom(rounding, w + 10, two_sided != 0 ? 24u : 16u);
  for (int32_t y = s->out_h; y > 0; y--) {
    for (int32_t x = out_w; x > 0; x--) {
      const uint8_t *in = plane;
      uint32_t sum = start + in[0] * a + in[1] * b + in[2] * c;
      in += columns;
      sum += in[0] * d + in[1] * e + in[2] * f;
      in += columns;
      sum += in[0] * g + in[1] * h + in[2] * i;
      *output = rounded(sum, rounding, right, two_sided, low, high);
      output += channels;
      plane += stride;
    }
    plane += turn;
  }
}

void tinyet_depthwise_s8_chw_3x3(const int8_t *input, int8_t *output, void *scratch,
                                 const tinyet_depthwise_s8_chw_3x3_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const tinyet_packed_words *const words = &params->words;
  const int32_t rows = (s->out_h - 1) * s->stride_h + 3, columns = (s->out_w - 1) * s->stride_w + 3;
  for (int32_t n = 0; n < s->batch; n++) {
    const TINYET_ROM uint32_t *w = words->stream;
    for (int32_t c = 0; c < s->in_c; c++) {
      plane_of((uint8_t *)scratch, input + c, rows, columns, s, (uint8_t)words->padding);
      if (words->two_sided != 0) {
        channel((const uint8_t *)scratch, output + c, columns, s, w, words, 1);
        w += 16;
      } else {
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
        const int32_t row = s->out_w * s->in_c;
        plane_walk walk = {s->out_h,
                           output + c + row,
                           row,
                           s->stride_h * columns - s->out_w * s->stride_w,
                           columns,
                           s->stride_w - 2 * columns,
                           s->in_c,
                           words->right,
                           ((uint32_t)words->clamp_high & 255u) | ((uint32_t)words->clamp_low & 255u) << 8};
        one_sided_channel((const uint8_t *)scratch, output + c, w, &walk);
#else
        channel((const uint8_t *)scratch, output + c, columns, s, w, words, 0);
#endif
        w += 14;
      }
    }
    input += s->in_h * s->in_w * s->in_c;
    output += s->out_h * s->out_w * s->in_c;
  }
}
