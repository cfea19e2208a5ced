/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_packed_twos.h"

/* An input below the one that a row's next output reads at the same tap. */
static inline uint32_t two(int32_t input, int32_t next) { return (uint32_t)input + ((uint32_t)next << 16); }

/* A row of `width` inputs, so that a word at the place of each holds the one `stride` further on, too. */
static void row_of_twos(uint32_t *to, const int8_t *from, int32_t width, int32_t channels, int32_t stride, int32_t padding) {
  int32_t a = padding, b = padding;
  to -= stride;
  if (stride == 1) {
    for (; width >= 2; width -= 2) {
      b = *from;
      from += channels;
      to[0] = two(a, b);
      a = *from;
      from += channels;
      to[1] = two(b, a);
      to += 2;
    }
    if (width > 0) {
      b = *from;
      *to++ = two(a, b);
      a = b;
    }
    *to = two(a, padding);
  } else {
    for (; width >= 2; width -= 2) {
      const int32_t c = *from;
      from += channels;
      to[0] = two(a, c);
      a = c;
      const int32_t d = *from;
      from += channels;
      to[1] = two(b, d);
      b = d;
      to += 2;
    }
    if (width > 0) {
      const int32_t c = *from;
      *to++ = two(a, c);
      a = b;
      b = c;
    }
    to[0] = two(a, padding);
    to[1] = two(b, padding);
  }
}


#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
typedef struct {
  const int8_t *end;  /* of the first row's outputs that are one of two */
  uint32_t down;      /* bytes from behind a row of a window to the next row of it */
  int32_t channels;   /* bytes from output to output */
  uint32_t back;      /* bytes from behind the last row of a window to the one of the next two outputs */
  uint32_t bounds;    /* of outputs: high, and low in the next byte */
  int32_t rows;
  int32_t row;        /* bytes from row to row of outputs */
  uint32_t turn;      /* bytes from the window behind the last one of a row to the first one of the next */
  int32_t odd;        /* bytes from output to output where a row's last one is not one of two, else 0 */
} plane_walk;

#define LOWEST "asrs r0, r0, #16\n" "adcs r5, r0\n"
#define ROW_OF_THREE          \
  "ldmia r6!, {r0, r1, r2}\n" \
  "ldmia r7!, {r3, r4}\n"     \
  "muls r0, r3, r0\n"         \
  "muls r1, r4, r1\n"         \
  "adds r0, r0, r1\n"         \
  "ldmia r7!, {r3}\n"         \
  "muls r2, r3, r2\n"         \
  "adds r0, r0, r2\n"         \
  "add r8, r0\n" LOWEST
#define ROW_OF_TWO_AND_ONE    \
  "ldmia r6!, {r0, r1, r2}\n" \
  "ldmia r7!, {r3, r4}\n"     \
  "muls r0, r3, r0\n"         \
  "muls r1, r4, r1\n"         \
  "adds r0, r0, r1\n"         \
  "asrs r1, r0, #16\n"        \
  "adcs r5, r1\n"             \
  "ldmia r7!, {r3}\n"         \
  "muls r2, r3, r2\n"         \
  "adds r0, r0, r2\n"         \
  "add r8, r0\n"              \
  "asrs r2, r2, #16\n"        \
  "adcs r5, r2\n"
#define VALUE(sum, lower)       \
  "muls " lower ", " sum ", " lower "\n" \
  "lsrs " lower ", " lower ", #14\n"     \
  "muls " sum ", r2, " sum "\n"          \
  "adds " sum ", " sum ", " lower "\n"   \
  "adds " sum ", " sum ", r4\n"          \
  "lsrs " sum ", " sum ", #24\n"
#define BOUND(sum)              \
  "lsrs " sum ", " sum ", #31\n" \
  "lsls " sum ", " sum ", #3\n"  \
  "ldr r4, [sp, #4]\n"          \
  "lsrs r4, r4, " sum "\n"      \
  "mov " sum ", r4\n"
/* Both outputs' sums in r0 and r5; what is beyond the range is one of its bounds, as the sign says. */
#define OUTPUTS(ROW)            \
  "1:\n"                        \
  "ldmia r7!, {r3, r5}\n"       \
  "mov r8, r3\n"                \
  ROW "add r6, r9\n" ROW "add r6, r9\n" ROW \
  "lsls r1, r5, #16\n"          \
  "mov r0, r8\n"                \
  "subs r0, r0, r1\n"           \
  "ldmia r7!, {r1, r2, r3, r4}\n" /* limit, upper, lower, offset */ \
  "subs r7, r7, #60\n"          \
  "cmp r0, r1\n"                \
  "bhs 6f\n"                    \
  "cmp r5, r1\n"                \
  "bhs 7f\n"                    \
  "mov r1, r3\n"                \
  VALUE("r0", "r1")             \
  "2:\n"                        \
  VALUE("r5", "r3")             \
  "3:\n"                        \
  "mov r1, r12\n"               \
  "mov r2, r10\n"               \
  "strb r5, [r1, r2]\n"         \
  "strb r0, [r1]\n"             \
  "adds r1, r1, r2\n"           \
  "adds r1, r1, r2\n"           \
  "mov r12, r1\n"               \
  "add r6, r11\n"               \
  "cmp r12, lr\n"               \
  "bne 1b\n"

/* All outputs of a channel, two of a row at a time. Inputs at r6, the stream at r7; the first sum in r8, which holds 65536
 * times the second, too, and that one in r5; in r9 ... r12 and lr down, channels, back, outputs and where those of a row end
 * that are one of two. One that is not is computed with whatever stands behind it: with zero for the bytes from output to
 * output, it overwrites the other. On the stack the walk and its bounds. */
#define CHANNEL(name, ROW)                                                                                       \
  __attribute__((naked, noinline)) static void name(const uint32_t *plane __attribute__((unused)),               \
                                                    int8_t *output __attribute__((unused)),                      \
                                                    const uint32_t *stream __attribute__((unused)),              \
                                                    plane_walk *walk __attribute__((unused))) {                  \
    __asm__ volatile(                                                                                            \
        ".syntax unified\n"                                                                                      \
        "push {r4, r5, r6, r7, lr}\n"                                                                            \
        "mov r4, r8\n"                                                                                           \
        "mov r5, r9\n"                                                                                           \
        "mov r6, r10\n"                                                                                          \
        "mov r7, r11\n"                                                                                          \
        "push {r4, r5, r6, r7}\n"                                                                                \
        "mov r6, r0\n"                                                                                           \
        "mov r12, r1\n"                                                                                          \
        "mov r7, r2\n"                                                                                           \
        "ldr r4, [r3, #16]\n"                                                                                    \
        "push {r3, r4}\n"                                                                                        \
        "ldmia r3!, {r0, r1, r2, r4}\n"                                                                          \
        "mov lr, r0\n"                                                                                           \
        "mov r9, r1\n"                                                                                           \
        "mov r10, r2\n"                                                                                          \
        "mov r11, r4\n"                                                                                          \
        "cmp r12, lr\n"                                                                                          \
        "beq 4f\n"                                                                                               \
        OUTPUTS(ROW)                                                                                             \
        "4:\n" /* behind what is in twos, or behind the one that is not, where channels are zero */              \
        "ldr r3, [sp]\n"                                                                                         \
        "ldr r0, [r3, #32]\n"                                                                                    \
        "mov r1, r10\n"                                                                                          \
        "cmp r1, #0\n"                                                                                           \
        "beq 5f\n"                                                                                               \
        "cmp r0, #0\n"                                                                                           \
        "beq 8f\n"                                                                                               \
        "movs r1, #0\n"                                                                                          \
        "mov r10, r1\n"                                                                                          \
        "b 1b\n"                                                                                                 \
        "5:\n"                                                                                                   \
        "mov r10, r0\n"                                                                                          \
        "8:\n"                                                                                                   \
        "add r12, r0\n"                                                                                          \
        "ldr r0, [r3, #24]\n"                                                                                    \
        "add lr, r0\n"                                                                                           \
        "ldr r0, [r3, #28]\n"                                                                                    \
        "add r6, r0\n"                                                                                           \
        "ldr r0, [r3, #20]\n"                                                                                    \
        "subs r0, r0, #1\n"                                                                                      \
        "str r0, [r3, #20]\n"                                                                                    \
        "beq 9f\n"                                                                                               \
        "cmp r12, lr\n"                                                                                          \
        "beq 4b\n"                                                                                               \
        "b 1b\n"                                                                                                 \
        "6:\n"                                                                                                   \
        "push {r4}\n"                                                                                            \
        "ldr r4, [sp, #8]\n"                                                                                     \
        "lsrs r0, r0, #31\n"                                                                                     \
        "lsls r0, r0, #3\n"                                                                                      \
        "lsrs r4, r4, r0\n"                                                                                      \
        "mov r0, r4\n"                                                                                           \
        "pop {r4}\n"                                                                                             \
        "cmp r5, r1\n"                                                                                           \
        "blo 2b\n"                                                                                               \
        "b 10f\n"                                                                                                \
        "7:\n"                                                                                                   \
        VALUE("r0", "r3")                                                                                        \
        "10:\n"                                                                                                  \
        BOUND("r5")                                                                                              \
        "b 3b\n"                                                                                                 \
        "9:\n"                                                                                                   \
        "add sp, sp, #8\n"                                                                                       \
        "pop {r4, r5, r6, r7}\n"                                                                                 \
        "mov r8, r4\n"                                                                                           \
        "mov r9, r5\n"                                                                                           \
        "mov r10, r6\n"                                                                                          \
        "mov r11, r7\n"                                                                                          \
        "pop {r4, r5, r6, r7, pc}\n");                                                                           \
  }

CHANNEL(in_rows, ROW_OF_THREE)
CHANNEL(in_twos, ROW_OF_TWO_AND_ONE)
#undef LOWEST
#undef ROW_OF_THREE
#undef ROW_OF_TWO_AND_ONE
#undef VALUE
#undef BOUND
#undef OUTPUTS
#undef CHANNEL

static void channel(const uint32_t *plane, int8_t *output, const uint32_t *stream, int32_t pitch,
                    const tinyet_conv2d_shape *s, const tinyet_packed_words *words) {
  const int32_t twos = s->out_w / 2, odd = s->out_w & 1, stride = s->stride_w;
  plane_walk walk = {output + 2 * twos * s->in_c,
                     (uint32_t)(4 * (pitch - 3)),
                     s->in_c,
                     (uint32_t)(4 * (2 * stride - 2 * pitch - 3)),
                     ((uint32_t)words->clamp_high & 255u) | ((uint32_t)words->clamp_low & 255u) << 8,
                     s->out_h,
                     s->out_w * s->in_c,
                     (uint32_t)(4 * (s->stride_h * pitch - 2 * (twos + odd) * stride)),
                     odd != 0 ? s->in_c : 0};
  if (stream[0] != 0u) {
    in_twos(plane, output, stream + 1, &walk);
  } else {
    in_rows(plane, output, stream + 1, &walk);
  }
}
#else
/* What a run adds to both sums. */
static inline void drain(uint32_t *both, uint32_t *high, uint32_t run) {
  *both += run;
  *high += ((run + UINT32_C(0x8000)) >> 16 ^ UINT32_C(0x8000)) - UINT32_C(0x8000);
}

static void channel(const uint32_t *plane, int8_t *output, const TINYET_ROM uint32_t *stream, int32_t pitch,
                    const tinyet_conv2d_shape *s, const tinyet_packed_words *words) {
  const TINYET_ROM uint32_t *const rounding = stream + 12;
  const int8_t low = (int8_t)words->clamp_low, high = (int8_t)words->clamp_high;
  const int32_t channels = s->in_c;
  for (int32_t y = 0; y < s->out_h; y++) {
    const uint32_t *at = plane + y * s->stride_h * pitch;
    for (int32_t left = s->out_w; left > 0; left -= 2) {
      uint32_t first = stream[1], second = stream[2];
      const TINYET_ROM uint32_t *w = stream + 3;
      const uint32_t *in = at;
      for (int32_t i = 0; i < 3; i++) {
        const uint32_t two = in[0] * w[0] + in[1] * w[1], one = in[2] * w[2];
        if (stream[0] != 0u) {
          drain(&first, &second, two);
          drain(&first, &second, one);
        } else {
          drain(&first, &second, two + one);
        }
        w += 3;
        in += pitch;
      }
      *output = tinyet_two_products(first - (second << 16), rounding, 14, 0, low, high);
      output += channels;
      if (left > 1) {
        *output = tinyet_two_products(second, rounding, 14, 0, low, high);
        output += channels;
      }
      at += 2 * s->stride_w;
    }
  }
}
#endif

void tinyet_depthwise_s8_chw_3x3_twos(const int8_t *input, int8_t *output, void *scratch,
                                      const tinyet_depthwise_s8_chw_3x3_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t padding = params->words.padding, stride = s->stride_w;
  const int32_t rows = (s->out_h - 1) * s->stride_h + 3, columns = (s->out_w - 1) * stride + 3;
  const int32_t right = columns - s->pad_left, bottom = rows - s->pad_top, pitch = columns + stride;
  const int32_t width = s->in_w < right ? s->in_w : right, height = s->in_h < bottom ? s->in_h : bottom;
  uint32_t *const plane = (uint32_t *)scratch + stride; /* left of each row is what its first words overwrite */
  const uint32_t border = two(padding, padding);
  for (int32_t i = 0; i < rows * pitch - stride; i++) {
    plane[i] = border;
  }
  for (int32_t n = 0; n < s->batch; n++) {
    const TINYET_ROM uint32_t *stream = params->words.stream;
    for (int32_t c = 0; c < s->in_c; c++) {
      uint32_t *to = plane + s->pad_top * pitch + s->pad_left;
      const int8_t *from = input + c;
      for (int32_t y = 0; y < height; y++) {
        row_of_twos(to, from, width, s->in_c, stride, padding);
        to += pitch;
        from += s->in_w * s->in_c;
      }
      channel(plane, output + c, stream, pitch, s, &params->words);
      stream += 16;
    }
    input += s->in_h * s->in_w * s->in_c;
    output += s->out_h * s->out_w * s->in_c;
  }
}
