/* SPDX-License-Identifier: Apache-2.0 */
#define TINYET_PAIRED_CHECKED
#include "tinyet_conv2d_paired.h"
#include "tinyet_one_product.h"

enum { PIXELS = 8, STEP = 5 /* words from tap to tap */, CHECK = 4 };

#include "tinyet_paired_windows_body.h"
#include "tinyet_surround_body.h"

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2 && defined(__thumb__)
#define IN_THUMB
#endif

/* What four pixels' windows see, of taps without gaps in the image: the lower half of a tile, or the upper one behind it. */
static inline __attribute__((always_inline)) void gather_four(word *patch, const int8_t *const from[4],
                                                              const tinyet_conv2d_shape *s, int32_t upper) {
  const int8_t *a = from[0], *b = from[1], *c = from[2], *d = from[3];
  const int32_t row = s->kernel_w * s->in_c, turn = s->in_w * s->in_c - row;
  word *to = patch + 2 * upper;
  for (int32_t i = s->kernel_h; i > 0; i--) {
    int32_t left = row;
#ifdef IN_THUMB
#define FOUR_INPUTS                    \
  "ldrsb %[x], [%[a]], #1\n"           \
  "ldrsb %[y], [%[b]], #1\n"           \
  "ldrsb %[z], [%[c]], #1\n"           \
  "ldrsb %[w], [%[d]], #1\n"           \
  "add %[x], %[x], %[y], lsl #16\n"    \
  "add %[z], %[z], %[w], lsl #16\n"    \
  "add %[y], %[y], %[w], lsl #4\n"     \
  "strd %[x], %[z], [%[to]], #20\n"
#define TAP(i)                                                                                          \
  do {                                                                                                  \
    uint32_t x, y, z, w;                                                                                \
    if (upper) {                                                                                        \
      __asm__ volatile(FOUR_INPUTS                                                                      \
                       "ldr %[w], [%[to], #-12]\n"                                                      \
                       "add %[w], %[w], %[y], lsl #8\n"                                                 \
                       "str %[w], [%[to], #-12]\n"                                                      \
                       : [x] "=&r"(x), [y] "=&r"(y), [z] "=&r"(z), [w] "=&r"(w), [a] "+&r"(a),          \
                         [b] "+&r"(b), [c] "+&r"(c), [d] "+&r"(d), [to] "+&r"(to)                       \
                       :                                                                                \
                       : "memory");                                                                     \
    } else {                                                                                            \
      __asm__ volatile(FOUR_INPUTS                                                                      \
                       "str %[y], [%[to], #-4]\n"                                                       \
                       : [x] "=&r"(x), [y] "=&r"(y), [z] "=&r"(z), [w] "=&r"(w), [a] "+&r"(a),          \
                         [b] "+&r"(b), [c] "+&r"(c), [d] "+&r"(d), [to] "+&r"(to)                       \
                       :                                                                                \
                       : "memory");                                                                     \
    }                                                                                                   \
  } while (0)
#define ONWARD(i)
#else
#define TAP(i)                                                                                 \
  do {                                                                                         \
    const uint32_t second = (uint32_t)b[i], fourth = (uint32_t)d[i];                           \
    word *const tap = to + STEP * (i), *const check = tap + CHECK - 2 * upper;                 \
    tap[0] = (uint32_t)a[i] + (second << 16);                                                  \
    tap[1] = (uint32_t)c[i] + (fourth << 16);                                                  \
    *check = upper ? *check + (second << 8) + (fourth << 12) : second + (fourth << 4);         \
  } while (0)
#define ONWARD(i) to += STEP * (i), a += (i), b += (i), c += (i), d += (i)
#endif
    for (; left >= 4; left -= 4) {
      TAP(0);
      TAP(1);
      TAP(2);
      TAP(3);
      ONWARD(4);
    }
    for (; left > 0; left--) {
      TAP(0);
      ONWARD(1);
    }
#undef FOUR_INPUTS
#undef TAP
#undef ONWARD
    a += turn, b += turn, c += turn, d += turn;
  }
}

static __attribute__((noinline)) void gather_lower(word *patch, const int8_t *const from[4], const tinyet_conv2d_shape *s) {
  gather_four(patch, from, s, 0);
}

static __attribute__((noinline)) void gather_upper(word *patch, const int8_t *const from[4], const tinyet_conv2d_shape *s) {
  gather_four(patch, from, s, 1);
}

static __attribute__((noinline)) void gather_one(word *patch, const int8_t *image, int32_t top, int32_t left,
                                                 const tinyet_conv2d_shape *s, int32_t padding, int32_t pixel) {
  gather(patch, image, top, left, s, padding, pixel);
}

/* The windows of the next pixels. Words of pixels that there are not are zero: nothing of them is in the fifth. */
static inline __attribute__((always_inline)) void gather_eight(word *patch, int32_t count, int32_t words, window_walk *walk,
                                                               const tinyet_conv2d_shape *s, int32_t padding) {
  const window_walk first = *walk;
  const int8_t *from[PIXELS];
  int32_t inside = count == PIXELS;
  for (int32_t i = 0; i < count; i++) {
    const int32_t top = walk->row * s->stride_h - s->pad_top, left = walk->column * s->stride_w - s->pad_left;
    if (top < 0 || top > walk->lowest || left < 0 || left > walk->rightmost) {
      inside = 0;
    } else {
      from[i] = walk->image + (top * s->in_w + left) * s->in_c;
    }
    next_pixel(walk, s);
  }
  if (inside) {
    gather_lower(patch, from, s);
    gather_upper(patch, from + 4, s);
    return;
  }
  window_walk again = first;
  if (count < PIXELS) {
    memset(patch, 0, (size_t)(4 * words));
  }
  for (int32_t i = 0; i < count; i++) {
    gather_one(patch + i / 2, walk->image, again.row * s->stride_h - s->pad_top, again.column * s->stride_w - s->pad_left, s,
               padding, i);
    next_pixel(&again, s);
  }
}

/* The same of neighbouring pixels of an image, each of which is all that a window sees. */
static inline __attribute__((always_inline)) void gather_pixels(word *patch, int32_t count, int32_t words, const int8_t *pixel,
                                                                const tinyet_conv2d_shape *s) {
  const int32_t taps = s->in_c;
  if (count == PIXELS) {
    const int8_t *from[PIXELS];
    for (int32_t i = 0; i < PIXELS; i++) {
      from[i] = pixel + i * taps;
    }
    gather_lower(patch, from, s);
    gather_upper(patch, from + 4, s);
    return;
  }
  memset(patch, 0, (size_t)(4 * words));
  for (int32_t i = 0; i < count; i++) {
    gather_one(patch + i / 2, pixel + i * taps, 0, 0, s, 0, i);
  }
}

#ifdef IN_THUMB
typedef struct {
  const word *patch, *end;
  int32_t row; /* bytes from pixel to pixel of the output */
  int8_t *output;
  const uint32_t *stream_end;
  int32_t skip; /* bytes of the straight code that the first turn does not execute */
  const uint32_t *stream;
} tile_walk;

#define WORDS(weight)               \
  "ldm r0!, {r7, r8, r9, r10, r11}\n" \
  "mla r2, r7, " weight ", r2\n"    \
  "mla r3, r8, " weight ", r3\n"    \
  "mla r4, r9, " weight ", r4\n"    \
  "mla r5, r10, " weight ", r5\n"   \
  "mla r6, r11, " weight ", r6\n"
#define TWO_TAPS            \
  "ldrsb lr, [r1, #1]\n"    \
  "ldrsb r12, [r1], #2\n"   \
  WORDS("r12") WORDS("lr")
#define FOUR_TAPS TWO_TAPS TWO_TAPS
enum { FOURS = 8, FOUR_TAPS_BYTES = 4 * 2 * 14 };
/* Digits that are left: of lower sums in r6, of upper ones in r9, both 8 more than they are, as the highest bits of lr are. */
#define DIGITS                  \
  "sub r6, r6, r2, lsr #16\n"   \
  "lsrs r7, r3, #16\n"          \
  "sub r6, r6, r7, lsl #4\n"    \
  "lsrs r7, r4, #16\n"          \
  "sub r6, r6, r7, lsl #8\n"    \
  "lsrs r7, r5, #16\n"          \
  "sub r6, r6, r7, lsl #12\n"   \
  "lsr r9, r6, #16\n"           \
  "mvns r6, r6\n"
#define ROUND(to)               \
  "smull r8, r7, r7, r12\n"     \
  "add r7, r7, r0\n"            \
  "ssat r7, #8, r7, asr #12\n"  \
  "strb r7, " to "\n"
/* Both sums of a word times 2^12: a digit above 16 bits of the word, and below them the fraction. */
#define OUTPUTS(sums, digit, above, low, high)  \
  "add r7, lr, r6, lsl #" above "\n"            \
  "bfi r7, " sums ", #12, #16\n"                \
  "lsrs " sums ", " sums ", #16\n"              \
  ROUND(low)                                    \
  "add r7, lr, r9, lsl #" above "\n"            \
  "bfi r7, " sums ", #12, #16\n"                \
  "ubfx r8, r6, #" digit ", #4\n"               \
  "sub r7, r7, r8, lsl #12\n"                   \
  ROUND(high)

/* All channels of eight pixels. Words at r0, the stream at r1, sums in r2 ... r6. On the stack the walk without its stream. */
__attribute__((naked, noinline)) static void tile_of(const tile_walk *walk __attribute__((unused))) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
      "sub sp, sp, #24\n"
      "ldm r0, {r2, r3, r4, r5, r6, r7, r8}\n"
      "mov r1, r8\n"
      "adr.w r8, 2f\n"
      "add r7, r7, r8\n"
      "orr r7, r7, #1\n"
      "stm sp, {r2, r3, r4, r5, r6, r7}\n"
      "1:\n"
      "ldm r1!, {r2, r6}\n"
      "mov r3, r2\n"
      "mov r4, r2\n"
      "mov r5, r2\n"
      "ldr r0, [sp]\n"
      "ldr pc, [sp, #20]\n"
      ".balign 4\n"
      "2:\n"
      FOUR_TAPS FOUR_TAPS FOUR_TAPS FOUR_TAPS FOUR_TAPS FOUR_TAPS FOUR_TAPS FOUR_TAPS
      "ldr r12, [sp, #4]\n"
      "cmp r0, r12\n"
      "bne 2b\n"
      DIGITS
      "ldm r1!, {r0, r12, lr}\n" /* offset, multiplier, 2^31 and fraction */
      "ldrd r10, r11, [sp, #8]\n"
      "add r7, r11, #1\n"
      "str r7, [sp, #12]\n"
      OUTPUTS("r2", "0", "28", "[r11]", "[r11, r10]")
      "add r11, r11, r10, lsl #1\n"
      OUTPUTS("r3", "4", "24", "[r11]", "[r11, r10]")
      "add r11, r11, r10, lsl #1\n"
      OUTPUTS("r4", "8", "20", "[r11]", "[r11, r10]")
      "add r11, r11, r10, lsl #1\n"
      OUTPUTS("r5", "12", "16", "[r11]", "[r11, r10]")
      "ldr r7, [sp, #16]\n"
      "cmp r1, r7\n"
      "bne 1b\n"
      "add sp, sp, #24\n"
      "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
}
#undef WORDS
#undef TWO_TAPS
#undef FOUR_TAPS
#undef DIGITS
#undef ROUND
#undef OUTPUTS

static void outputs(const word *patch, int8_t *output, int32_t fours,
                    const tinyet_conv2d_s8_paired_checked_8x1_params *params) {
  const int32_t out_c = params->shape.out_c;
  const tile_walk walk = {patch,
                          patch + 4 * STEP * fours,
                          out_c,
                          output,
                          params->stream + out_c * (fours + 5),
                          (-fours & (FOURS - 1)) * FOUR_TAPS_BYTES,
                          params->stream};
  tile_of(&walk);
}
#else
static inline int8_t output_of(uint32_t sum, const TINYET_ROM uint32_t *rounding) {
  const int32_t high = tinyet_upper_half((int32_t)sum, (int32_t)rounding[1]);
  const int32_t value = (high + (int32_t)rounding[0]) >> 12;
  return (int8_t)(value < -128 ? -128 : value > 127 ? 127 : value);
}

static void outputs(const word *patch, int8_t *output, int32_t fours,
                    const tinyet_conv2d_s8_paired_checked_8x1_params *params) {
  const TINYET_ROM uint32_t *f = params->stream;
  const int32_t out_c = params->shape.out_c;
  for (int32_t channel = 0; channel < out_c; channel++) {
    uint32_t sums[STEP] = {f[0], f[0], f[0], f[0], f[1]};
    const word *x = patch;
    f += 2;
    for (int32_t left = fours; left > 0; left--) {
      uint32_t weights = *f++;
      for (int32_t tap = 0; tap < 4; tap++, weights >>= 8) {
        const uint32_t weight = ((weights & 255u) ^ 128u) - 128u;
        for (int32_t i = 0; i < STEP; i++) {
          sums[i] += *x++ * weight;
        }
      }
    }
    for (int32_t i = 0; i < CHECK; i++) {
      sums[CHECK] -= sums[i] >> 16 << 4 * i;
    }
    /* Digits that are left, of lower sums 8 more than they are, and of upper ones. */
    const uint32_t lower = ~sums[CHECK], upper = sums[CHECK] >> 16;
    for (int32_t i = 0; i < CHECK; i++) {
      int8_t *const out = output + 2 * i * out_c + channel;
      const uint32_t digit = (lower >> 4 * i) & 15u, low = sums[i] & 0xffffu, high = (sums[i] >> 16) - digit;
      out[0] = output_of((digit << 28) + f[2] + (low << 12), f);
      out[out_c] = output_of((upper >> 4 * i << 28) + f[2] + (high << 12), f);
    }
    f += 3;
  }
}
#endif

void tinyet_conv2d_s8_paired_checked_8x1(const int8_t *input, int8_t *output, void *scratch,
                                         const tinyet_conv2d_s8_paired_checked_8x1_params *params) {
  tinyet_conv2d_shape s = params->shape;
  const int32_t taps = s.kernel_h * s.kernel_w * s.in_c, fours = (taps + 3) / 4, pixels = s.out_h * s.out_w;
  const int32_t out_c = s.out_c, words = 4 * STEP * fours, size = s.in_h * s.in_w * s.in_c;
  word *const patch = (word *)scratch;
  int8_t *const apart = (int8_t *)(patch + words), *const padded = apart + PIXELS * out_c;
  if (params->padded_h != 0) {
    s.in_h = params->padded_h, s.in_w = params->padded_w;
    s.pad_top = 0, s.pad_left = 0;
  }
  const int32_t pointwise = taps == s.in_c && s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 && s.pad_left == 0 &&
                            s.out_h == s.in_h && s.out_w == s.in_w;
  memset(scratch, 0, (size_t)(4 * words));
  for (int32_t n = 0; n < s.batch; n++) {
    if (params->padded_h != 0) {
      surround(padded, input, &params->shape, &s, (int8_t)params->padding);
    }
    window_walk walk = first_window(params->padded_h != 0 ? padded : input, &s);
    for (int32_t pixel = 0; pixel < pixels; pixel += PIXELS) {
      const int32_t count = pixels - pixel < PIXELS ? pixels - pixel : (int32_t)PIXELS;
      if (pointwise) {
        gather_pixels(patch, count, words, input + pixel * taps, &s);
      } else {
        gather_eight(patch, count, words, &walk, &s, params->padding);
      }
      if (count == PIXELS) {
        outputs(patch, output, fours, params);
      } else {
        outputs(patch, apart, fours, params);
        memcpy(output, apart, (size_t)(count * out_c));
      }
      tinyet_clamp_outputs(output, count * out_c, params->clamp_low, params->clamp_high);
      output += count * out_c;
    }
    input += size;
  }
}
