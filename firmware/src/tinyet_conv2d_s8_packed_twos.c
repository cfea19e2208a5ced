/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_packed_twos.h"

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
/* Four bytes at a time, until `end`. */
__attribute__((naked, noinline)) static void fours_widened(int32_t *to __attribute__((unused)),
                                                           const int8_t *from __attribute__((unused)),
                                                           const int32_t *end __attribute__((unused))) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4, r5, r6, lr}\n"
      "1:\n"
      "ldmia r1!, {r6}\n"
      "sxtb r3, r6\n"
      "lsls r4, r6, #16\n"
      "asrs r4, r4, #24\n"
      "lsls r5, r6, #8\n"
      "asrs r5, r5, #24\n"
      "asrs r6, r6, #24\n"
      "stmia r0!, {r3, r4, r5, r6}\n"
      "cmp r0, r2\n"
      "bne 1b\n"
      "pop {r4, r5, r6, pc}\n");
}
#else
typedef uint32_t __attribute__((may_alias)) word;

static void fours_widened(int32_t *to, const int8_t *from, const int32_t *end) {
  const word *in = (const word *)(const void *)from;
  for (; to != end; to += 4) {
    const uint32_t four = *in++;
    to[0] = (int8_t)four;
    to[1] = (int8_t)(four >> 8);
    to[2] = (int8_t)(four >> 16);
    to[3] = (int8_t)(four >> 24);
  }
}
#endif

/* Bytes as words with their signs; gives where they end. whole: whether bytes and their number are multiples of four. */
static int32_t *widened(int32_t *to, const int8_t *from, int32_t count, int32_t whole) {
  if (whole != 0) {
    fours_widened(to, from, to + count);
    return to + count;
  }
  for (; count >= 4; count -= 4) {
    to[0] = from[0];
    to[1] = from[1];
    to[2] = from[2];
    to[3] = from[3];
    to += 4;
    from += 4;
  }
  for (; count > 0; count--) {
    *to++ = *from++;
  }
  return to;
}

static inline int32_t in_fours(const int8_t *input, int32_t channels) {
  return (((uintptr_t)input | (uintptr_t)channels) & 3u) == 0u ? 1 : 0;
}

static int32_t *filled(int32_t *to, int32_t value, int32_t count) {
  for (; count > 0; count--) {
    *to++ = value;
  }
  return to;
}

static int32_t within(int32_t value, int32_t most) { return value < 0 ? 0 : value < most ? value : most; }

/* A window: of each row what lies left of the image, in it, and right of it, or tap by tap where these lie apart. */
static void gather(int32_t *patch, const int8_t *image, int32_t top, int32_t left, const tinyet_conv2d_shape *s,
                   int32_t padding, int32_t fours) {
  const int32_t channels = s->in_c, row = s->kernel_w * channels;
  const int32_t before = within(-left, s->kernel_w);
  const int32_t after = within(left + s->kernel_w - s->in_w, s->kernel_w - before);
  const int32_t blanks = before * channels, last_blanks = after * channels, count = row - blanks - last_blanks;
  for (int32_t i = 0; i < s->kernel_h; i++) {
    const int32_t y = top + i * s->dilation_h;
    if (y < 0 || y >= s->in_h) {
      patch = filled(patch, padding, row);
    } else if (s->dilation_w == 1) {
      if (blanks != 0) {
        patch = filled(patch, padding, blanks);
      }
      if (count > 0) {
        patch = widened(patch, image + (y * s->in_w + left) * channels + blanks, count, fours);
      }
      if (last_blanks != 0) {
        patch = filled(patch, padding, last_blanks);
      }
    } else {
      for (int32_t j = 0; j < s->kernel_w; j++) {
        const int32_t x = left + j * s->dilation_w;
        if (x < 0 || x >= s->in_w) {
          patch = filled(patch, padding, channels);
        } else {
          patch = widened(patch, image + (y * s->in_w + x) * channels, channels, fours);
        }
      }
    }
  }
}

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
typedef struct {
  const int32_t *patch;
  int32_t skip;        /* of the straight code, in bytes, that the first turn does not execute */
  uint32_t right;      /* in its lowest byte; the sign says that sums are rounded two ways */
  const int8_t *end;   /* of the outputs */
  uint32_t bounds;     /* of outputs: high, and low in the next byte */
  const int32_t *last; /* end of the patch */
} block_walk;

enum { TWOS = 8 /* of the straight code */, TWO_BYTES = 30 };

/* The carry of the shift is the sign of the lower half, which the upper half lacks. */
#define PAIR(both, high)                                 \
  "ldmia r7!, {r2, r3}\n"                                \
  "muls r2, r0, r2\n"                                    \
  "muls r3, r1, r3\n"                                    \
  "adds r2, r2, r3\n"                                    \
  "add " both ", r2\n"                                   \
  "asrs r2, r2, #16\n"                                   \
  "adcs " high ", " high ", r2\n"
#define TWO "ldmia r6!, {r0, r1}\n" PAIR("r8", "r4") PAIR("r9", "r5")
#define ROUND(i, more)                                   \
  "ldmia r7!, {r1, r2, r3, r4}\n" /* limit, upper, lower, offset */ more \
  "cmp r0, r1\n"                                         \
  "bhs 2" #i "f\n"                                       \
  "muls r3, r0, r3\n"                                    \
  "lsrs r3, r3, r5\n"                                    \
  "muls r0, r2, r0\n"                                    \
  "adds r0, r0, r3\n"                                    \
  "adds r0, r0, r4\n"                                    \
  "lsrs r0, r0, #24\n"                                   \
  "strb r0, [r6, #" #i "]\n"                             \
  "3" #i ":\n"
#define ONE_SIDED(i) ROUND(i, "")
#define TWO_SIDED(i)                                     \
  "ldmia r7!, {r1, r5}\n" /* split, less */              \
  "cmp r0, r1\n"                                         \
  "sbcs r1, r1, r1\n"                                    \
  "ands r5, r5, r1\n"                                    \
  ROUND(i, "subs r4, r4, r5\n" "ldr r5, [sp, #8]\n")
/* Outside the range: the sign says which bound it is. */
#define BOUND(i)                                         \
  "2" #i ":\n"                                           \
  "lsrs r0, r0, #31\n"                                   \
  "lsls r0, r0, #3\n"                                    \
  "ldr r1, [sp, #16]\n"                                  \
  "lsrs r1, r1, r0\n"                                    \
  "strb r1, [r6, #" #i "]\n"                             \
  "b 3" #i "b\n"
/* The first sum is in r0; the others are those of r10 and r11 as they are, and r9 less 65536 times the latter. */
#define FOUR(ROUNDED)                                    \
  ROUNDED(0) "mov r0, r10\n" ROUNDED(1)                  \
  "mov r0, r11\n"                                        \
  "lsls r0, r0, #16\n"                                   \
  "mov r1, r9\n"                                         \
  "subs r0, r1, r0\n"                                    \
  ROUNDED(2) "mov r0, r11\n" ROUNDED(3)

/* Blocks of four outputs each; gives the stream behind them. Two inputs in r0 and r1, weights in r2 and r3, both sums
 * of pairs in r8 and r9, the second ones in r4 and r5, later r10 and r11; inputs at r6, then outputs, the stream at
 * r7, the end of the inputs in lr, outputs at r12. On the stack the walk, without its last word. */
__attribute__((naked, noinline)) static const uint32_t *blocks_of(const uint32_t *stream __attribute__((unused)),
                                                                  int8_t *output __attribute__((unused)),
                                                                  const block_walk *walk __attribute__((unused))) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4, r5, r6, r7, lr}\n"
      "mov r4, r8\n"
      "mov r5, r9\n"
      "mov r6, r10\n"
      "mov r7, r11\n"
      "push {r4, r5, r6, r7}\n"
      "sub sp, sp, #20\n"
      "mov r7, r0\n"
      "mov r12, r1\n"
      "ldmia r2!, {r0, r1, r3, r4, r5, r6}\n"
      "mov lr, r6\n"
      "mov r2, sp\n"
      "stmia r2!, {r0, r1, r3, r4, r5}\n"
      "1:\n"
      "ldmia r7!, {r0, r1, r4, r5}\n"
      "mov r8, r0\n"
      "mov r9, r1\n"
      "ldr r6, [sp]\n"
      "ldr r0, [sp, #4]\n"
      "add pc, r0\n"
      "nop\n" /* the program counter is two instructions ahead */
      "2:\n"
      TWO TWO TWO TWO TWO TWO TWO TWO
      "cmp r6, lr\n"
      "bne 2b\n"
      "mov r10, r4\n"
      "mov r11, r5\n"
      "lsls r0, r4, #16\n"
      "mov r1, r8\n"
      "subs r0, r1, r0\n"
      "mov r6, r12\n"
      "ldr r5, [sp, #8]\n"
      "cmp r5, #0\n"
      "blt 5f\n"
      FOUR(ONE_SIDED)
      "4:\n"
      "adds r6, r6, #4\n"
      "mov r12, r6\n"
      "ldr r0, [sp, #12]\n"
      "cmp r6, r0\n"
      "beq 6f\n"
      "b 1b\n"
      BOUND(0) BOUND(1) BOUND(2) BOUND(3)
      "6:\n"
      "mov r0, r7\n"
      "add sp, sp, #20\n"
      "pop {r4, r5, r6, r7}\n"
      "mov r8, r4\n"
      "mov r9, r5\n"
      "mov r10, r6\n"
      "mov r11, r7\n"
      "pop {r4, r5, r6, r7, pc}\n"
      "5:\n"
      FOUR(TWO_SIDED)
      "b 4b\n"
      BOUND(0) BOUND(1) BOUND(2) BOUND(3));
}
#undef PAIR
#undef TWO
#undef ROUND
#undef ONE_SIDED
#undef TWO_SIDED
#undef BOUND
#undef FOUR

typedef struct {
  block_walk walk;
  const tinyet_packed_words *layer;
  int32_t rest, whole; /* channels of a last block, and of those before it */
} all_blocks;

static all_blocks blocks_in(const int32_t *patch, int32_t twos, const tinyet_packed_words *layer) {
  const int32_t rest = layer->out_c & 3, first = twos & (TWOS - 1);
  const all_blocks found = {{patch,
                             first != 0 ? (TWOS - first) * TWO_BYTES : 0,
                             (uint32_t)layer->right | (layer->two_sided != 0 ? UINT32_C(1) << 31 : 0u),
                             0,
                             ((uint32_t)layer->clamp_high & 255u) | ((uint32_t)layer->clamp_low & 255u) << 8,
                             patch + 2 * twos},
                            layer,
                            rest,
                            layer->out_c - rest};
  return found;
}

/* All channels of a pixel; gives where they end. */
static int8_t *pixel(all_blocks *all, int8_t *output) {
  const uint32_t *stream = all->layer->stream;
  int8_t *const end = output + all->whole;
  if (end != output) {
    all->walk.end = end;
    stream = blocks_of(stream, output, &all->walk);
  }
  if (all->rest != 0) {
    int8_t last[4];
    all->walk.end = last + 4;
    (void)blocks_of(stream, last, &all->walk);
    memcpy(end, last, (size_t)all->rest);
  }
  return end + all->rest;
}
#else
/* What a run of two taps adds to both sums of a pair. */
static inline void run(uint32_t *both, uint32_t *high, const int32_t *x, const TINYET_ROM uint32_t *w) {
  const uint32_t sum = (uint32_t)x[0] * w[0] + (uint32_t)x[1] * w[1];
  *both += sum;
  *high += ((sum + UINT32_C(0x8000)) >> 16 ^ UINT32_C(0x8000)) - UINT32_C(0x8000);
}

typedef struct {
  const int32_t *patch;
  int32_t twos;
  const tinyet_packed_words *layer;
} all_blocks;

static all_blocks blocks_in(const int32_t *patch, int32_t twos, const tinyet_packed_words *layer) {
  const all_blocks found = {patch, twos, layer};
  return found;
}

static int8_t *pixel(all_blocks *all, int8_t *output) {
  const tinyet_packed_words *const layer = all->layer;
  const TINYET_ROM uint32_t *w = layer->stream;
  const int32_t right = layer->right, step = layer->two_sided != 0 ? 6 : 4;
  const int8_t low = (int8_t)layer->clamp_low, high = (int8_t)layer->clamp_high;
  for (int32_t left = layer->out_c; left > 0; left -= 4) {
    uint32_t first = w[0], second = w[1], of_first = w[2], of_second = w[3];
    const int32_t *x = all->patch;
    w += 4;
    for (int32_t i = 0; i < all->twos; i++) {
      run(&first, &of_first, x, w);
      run(&second, &of_second, x, w + 2);
      x += 2;
      w += 4;
    }
    const uint32_t sums[4] = {first - (of_first << 16), of_first, second - (of_second << 16), of_second};
    const TINYET_ROM uint32_t *f = w;
    w += 4 * step;
    const int32_t count = left < 4 ? left : 4;
    for (int32_t i = 0; i < count; i++, f += step) {
      *output++ = tinyet_two_products(sums[i], f, right, step == 6 ? 1 : 0, low, high);
    }
  }
  return output;
}
#endif

void tinyet_conv2d_s8_packed_twos(const int8_t *input, int8_t *output, void *scratch,
                                  const tinyet_conv2d_s8_packed_words_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t taps = s->kernel_h * s->kernel_w * s->in_c, twos = (taps + 1) / 2;
  const int32_t fours = in_fours(input, s->in_c);
  int32_t *const patch = (int32_t *)scratch;
  all_blocks blocks = blocks_in(patch, twos, &params->words);
  patch[2 * twos - 1] = 0;
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t out_y = 0; out_y < s->out_h; out_y++) {
      const int32_t top = out_y * s->stride_h - s->pad_top;
      for (int32_t out_x = 0; out_x < s->out_w; out_x++) {
        gather(patch, input, top, out_x * s->stride_w - s->pad_left, s, params->words.padding, fours);
        output = pixel(&blocks, output);
      }
    }
    input += s->in_h * s->in_w * s->in_c;
  }
}

void tinyet_conv2d_1x1_s8_packed_twos(const int8_t *input, int8_t *output, void *scratch,
                                      const tinyet_conv2d_s8_packed_words_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t twos = (s->in_c + 1) / 2;
  const int32_t fours = in_fours(input, s->in_c);
  int32_t *const patch = (int32_t *)scratch;
  all_blocks blocks = blocks_in(patch, twos, &params->words);
  patch[2 * twos - 1] = 0;
  for (int32_t pixels = s->batch * s->out_h * s->out_w; pixels > 0; pixels--) {
    (void)widened(patch, input, s->in_c, fours);
    output = pixel(&blocks, output);
    input += s->in_c;
  }
}
