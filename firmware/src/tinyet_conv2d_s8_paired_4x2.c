/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_paired.h"
#include "tinyet_one_product.h"

enum { PIXELS = 4, STEP = 8 /* bytes from tap to tap: two words */ };

typedef uint32_t __attribute__((may_alias)) word;

/* A pixel's place in a word, and whether it is 128 more there: the first of two is the lowest byte, as 0 ... 255, the second
 * the highest one as it is. The bytes between stay zero. */
static inline uint8_t *copy(uint8_t *to, const int8_t *from, int32_t count, uint32_t more) {
  for (; count >= 4; count -= 4) {
    uint32_t four;
    memcpy(&four, from, 4u);
    four ^= more;
    to[0] = (uint8_t)four, to[STEP] = (uint8_t)(four >> 8);
    to[2 * STEP] = (uint8_t)(four >> 16), to[3 * STEP] = (uint8_t)(four >> 24);
    to += 4 * STEP;
    from += 4;
  }
  for (; count > 0; count--) {
    *to = (uint8_t)((uint8_t)*from++ ^ more);
    to += STEP;
  }
  return to;
}

static inline uint8_t *fill(uint8_t *to, uint32_t value, int32_t count) {
  for (; count > 0; count--) {
    *to = (uint8_t)value;
    to += STEP;
  }
  return to;
}

/* What the window of one pixel sees: of each row what lies left of the image, in it, and right of it. */
static void gather(uint8_t *patch, const int8_t *image, int32_t top, int32_t left, const tinyet_conv2d_shape *s,
                   uint32_t padding, uint32_t more) {
  const int32_t in_c = s->in_c, row = s->kernel_w * in_c, right = left + s->kernel_w - s->in_w;
  const int32_t before = left >= 0 ? 0 : -left < s->kernel_w ? -left * in_c : row;
  const int32_t behind = right <= 0 ? 0 : right < s->kernel_w ? right * in_c : row;
  const int32_t inside = row - before - behind;
  const uint32_t value = padding ^ more;
  for (int32_t i = 0; i < s->kernel_h; i++) {
    const int32_t y = top + i * s->dilation_h;
    if (y < 0 || y >= s->in_h) {
      patch = fill(patch, value, row);
    } else if (s->dilation_w == 1) {
      patch = fill(patch, value, before);
      patch = copy(patch, image + y * s->in_w * in_c + left * in_c + before, inside, more);
      patch = fill(patch, value, behind);
    } else {
      for (int32_t j = 0; j < s->kernel_w; j++) {
        const int32_t x = left + j * s->dilation_w;
        patch = x < 0 || x >= s->in_w ? fill(patch, value, in_c) : copy(patch, image + (y * s->in_w + x) * in_c, in_c, more);
      }
    }
  }
}

/* The same of both pixels of a pair whose windows, of taps without gaps, lie in the image. */
static __attribute__((noinline)) void gather_two(word *patch, const int8_t *first, const int8_t *second,
                                                 const tinyet_conv2d_shape *s) {
  const int32_t row = s->kernel_w * s->in_c, turn = s->in_w * s->in_c - row;
  for (int32_t i = s->kernel_h; i > 0; i--) {
    int32_t left = row;
#define TAP(i) patch[2 * (i)] = ((uint32_t)(uint8_t)first[i] ^ 128u) | (uint32_t)(uint8_t)second[i] << 24
    for (; left >= 4; left -= 4) {
      TAP(0);
      TAP(1);
      TAP(2);
      TAP(3);
      patch += 8;
      first += 4;
      second += 4;
    }
    for (; left > 0; left--) {
      TAP(0);
      patch += 2;
      first++;
      second++;
    }
#undef TAP
    first += turn;
    second += turn;
  }
}

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2 && defined(__thumb__)
typedef struct {
  const void *patch;
  const uint32_t *stream;
  int8_t *output;
  int32_t row; /* bytes from pixel to pixel of the output */
  int32_t pairs;
  int32_t fours;
  int32_t two_sided;
  const int8_t *weights;
} tile_walk;

#define TAP(a, b)                  \
  "ldm r0!, {r10, r11}\n"          \
  "ldrsb r12, " a "\n"             \
  "smlal r2, r3, r10, r12\n"       \
  "smlal r6, r7, r11, r12\n"       \
  "ldrsb r12, " b "\n"             \
  "smlal r4, r5, r10, r12\n"       \
  "smlal r8, r9, r11, r12\n"
#define TAP_AT(a, b) TAP("[r1, #" #a "]", "[r1, #" #b "]")
/* 256 times both sums of a pair, where its words were. */
#define SPLIT(low, high)               \
  "lsls " high ", " high ", #16\n"     \
  "lsrs r0, " low ", #24\n"            \
  "orr " high ", " high ", r0, lsl #8\n" \
  "lsls " low ", " low ", #8\n"        \
  "eor " low ", " low ", #0x80000000\n"
#define ROUND(sum, negative, to)            \
  "smull r0, " sum ", " sum ", r10\n" negative(sum) \
  "add " sum ", " sum ", r11\n"             \
  "asr " sum ", " sum ", r12\n"             \
  "ssat " sum ", #8, " sum "\n"             \
  "strb " sum ", " to "\n"
#define KEEP(sum) ""
/* Halves of sums below zero are rounded away from it; the product has the sign of its sum. */
#define AWAY(sum) "asrs r0, " sum ", #31\n" "add " sum ", " sum ", r0, lsl #7\n"
#define CHANNEL(a, b, c, d, negative)    \
  "ldr r0, [sp, #4]\n"                   \
  "ldm r0!, {r10, r11, r12}\n" /* multiplier, offset, shift */ \
  "str r0, [sp, #4]\n"                   \
  SPLIT(a, b)                            \
  SPLIT(c, d)                            \
  ROUND(a, negative, "[lr]")             \
  ROUND(b, negative, "[lr, r1]")         \
  ROUND(c, negative, "[lr, r1, lsl #1]") \
  "add lr, lr, r1\n"                     \
  ROUND(d, negative, "[lr, r1, lsl #1]") \
  "sub lr, lr, r1\n"                     \
  "adds lr, lr, #1\n"
#define BOTH(negative) \
  CHANNEL("r2", "r3", "r6", "r7", negative) \
  CHANNEL("r4", "r5", "r8", "r9", negative)

/* All channels of four pixels; the walk moves on. */
__attribute__((naked, noinline)) static void tile_of(tile_walk *walk __attribute__((unused))) {
  __asm__ volatile(
      "push {r0, r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
      "sub sp, sp, #32\n"
      "ldm r0, {r1, r2, r3, r4, r5, r6, r7, r8}\n"
      "stm sp, {r1, r2, r3, r4, r5, r6, r7, r8}\n"
      "mov r1, r8\n"
      "1:\n"
      "ldr r12, [sp, #4]\n"
      "ldm r12!, {r2, r3, r4, r5}\n"
      "str r12, [sp, #4]\n"
      "mov r6, r2\n"
      "mov r7, r3\n"
      "mov r8, r4\n"
      "mov r9, r5\n"
      "ldr r0, [sp]\n"
      "ldr lr, [sp, #20]\n"
      "lsrs lr, lr, #1\n"
      "bcc 2f\n"
      "adds r1, r1, #8\n"
      "add lr, lr, #1\n"
      "b 3f\n"
      "2:\n"
      TAP("[r1], #16", "[r1, #-15]") TAP_AT(-14, -13) TAP_AT(-12, -11) TAP_AT(-10, -9)
      "3:\n"
      TAP_AT(-8, -7) TAP_AT(-6, -5) TAP_AT(-4, -3) TAP_AT(-2, -1)
      "subs lr, lr, #1\n"
      "bne 2b\n"
      "str r1, [sp, #28]\n"
      "ldrd lr, r1, [sp, #8]\n"
      "ldr r0, [sp, #24]\n"
      "cmp r0, #0\n"
      "beq 4f\n"
      BOTH(AWAY)
      "b 5f\n"
      "4:\n"
      BOTH(KEEP)
      "5:\n"
      "str lr, [sp, #8]\n"
      "ldr r1, [sp, #28]\n"
      "ldr r0, [sp, #16]\n"
      "subs r0, r0, #1\n"
      "str r0, [sp, #16]\n"
      "bne 1b\n"
      "add sp, sp, #36\n"
      "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
}
#undef TAP
#undef TAP_AT
#undef SPLIT
#undef ROUND
#undef KEEP
#undef AWAY
#undef CHANNEL
#undef BOTH

static void outputs(const void *patch, int8_t *output, int32_t row, int32_t fours,
                    const tinyet_conv2d_s8_paired_4x2_params *params) {
  tile_walk walk = {patch,  params->outputs.stream, output, row, (params->shape.out_c + 1) / 2,
                    fours, params->outputs.two_sided, params->weights};
  tile_of(&walk);
}
#else
static void outputs(const void *patch, int8_t *output, int32_t row, int32_t fours,
                    const tinyet_conv2d_s8_paired_4x2_params *params) {
  const TINYET_ROM uint32_t *f = params->outputs.stream;
  const TINYET_ROM int8_t *weights = params->weights;
  const int32_t away = params->outputs.two_sided != 0 ? 128 : 0;
  for (int32_t pairs = (params->shape.out_c + 1) / 2; pairs > 0; pairs--) {
    for (int32_t c = 0; c < 2; c++) {
      const TINYET_ROM uint32_t *const rounding = f + 4 + 3 * c;
      for (int32_t pair = 0; pair < 2; pair++) {
        const word *x = (const word *)patch + pair;
        uint64_t sums = (uint64_t)f[2 * c + 1] << 32 | f[2 * c];
        for (int32_t tap = 0; tap < 4 * fours; tap++) {
          sums += (uint64_t)((int64_t)(int32_t)x[2 * tap] * weights[2 * tap + c]);
        }
        int8_t *const out = output + 2 * pair * row + c;
        const int32_t low = (int32_t)(sums & 0xFFFFFFu) - 0x800000, high = (int32_t)(uint32_t)(sums >> 24);
        out[0] = (int8_t)tinyet_one_product(low * 256, (int32_t)rounding[0], (int32_t)rounding[1], away, rounding[2]);
        out[row] = (int8_t)tinyet_one_product(high * 256, (int32_t)rounding[0], (int32_t)rounding[1], away, rounding[2]);
      }
    }
    output += 2;
    f += 10;
    weights += 8 * fours;
  }
}
#endif

void tinyet_conv2d_s8_paired_4x2(const int8_t *input, int8_t *output, void *scratch,
                                 const tinyet_conv2d_s8_paired_4x2_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t taps = s->kernel_h * s->kernel_w * s->in_c, fours = (taps + 3) / 4, pixels = s->out_h * s->out_w;
  const int32_t out_c = s->out_c, even = out_c + (out_c & 1);
  uint8_t *const patch = (uint8_t *)scratch;
  int8_t *const apart = (int8_t *)scratch + 4 * STEP * fours;
  /* The last place of a window that lies in the image; none where taps have gaps. */
  const int32_t lowest = s->dilation_h == 1 && s->dilation_w == 1 ? s->in_h - s->kernel_h : -1;
  const int32_t rightmost = s->in_w - s->kernel_w;
  const uint32_t padding = (uint32_t)params->outputs.padding & 255u;
  memset(scratch, 0, (size_t)(4 * STEP * fours));
  for (int32_t n = 0; n < s->batch; n++) {
    int32_t row = 0, column = 0;
    for (int32_t pixel = 0; pixel < pixels; pixel += PIXELS) {
      const int32_t count = pixels - pixel < PIXELS ? pixels - pixel : (int32_t)PIXELS;
      for (int32_t i = 0; i < count; i += 2) {
        const int32_t top = row * s->stride_h - s->pad_top, left = column * s->stride_w - s->pad_left;
        if (++column == s->out_w) {
          column = 0, row++;
        }
        const int32_t next_top = row * s->stride_h - s->pad_top, next_left = column * s->stride_w - s->pad_left;
        if (i + 1 < count && ++column == s->out_w) {
          column = 0, row++;
        }
        if (top >= 0 && next_top <= lowest && left >= 0 && left <= rightmost && next_left >= 0 && next_left <= rightmost) {
          gather_two((word *)scratch + i / 2, input + (top * s->in_w + left) * s->in_c,
                     input + (next_top * s->in_w + next_left) * s->in_c, s);
        } else {
          gather(patch + 2 * i, input, top, left, s, padding, 0x80808080u);
          if (i + 1 < count) {
            gather(patch + 2 * i + 3, input, next_top, next_left, s, padding, 0u);
          }
        }
      }
      if (count == PIXELS && even == out_c) {
        outputs(patch, output, out_c, fours, params);
      } else {
        outputs(patch, apart, even, fours, params);
        for (int32_t i = 0; i < count; i++) {
          memcpy(output + i * out_c, apart + i * even, (size_t)out_c);
        }
      }
      tinyet_clamp_outputs(output, count * out_c, params->outputs.clamp_low, params->outputs.clamp_high);
      output += count * out_c;
    }
    input += s->in_h * s->in_w * s->in_c;
  }
}
