/* SPDX-License-Identifier: Apache-2.0 */
/* What windows of six pixels see, three pixels in two words a tap, as tinyet_conv2d_paired.h has them; or, where the file that
 * includes this has defined SECOND_IN_BOTH, of three pixels, as tinyet_conv2d_outer.h has them. */
#ifndef TINYET_WINDOWS_IN_THREES_BODY_H
#define TINYET_WINDOWS_IN_THREES_BODY_H

#include "tinyet_common.h"

#ifdef SECOND_IN_BOTH
enum {
  STEP = 2, /* words from tap to tap */
  FIELD = 21
};

typedef uint32_t __attribute__((may_alias)) word;

/* A pixel's inputs: the first or the second of three is a word by itself, the third is added above the second. */
static inline void put(word *to, int32_t value, int32_t third) {
  if (third != 0) {
    to[1] += (uint32_t)value << FIELD;
  } else {
    *to = (uint32_t)value;
  }
}
#else
enum {
  STEP = 4, /* words from tap to tap */
  FIELD = 21,
  ABOVE = 2 * FIELD - 32 /* by how much the third input is shifted in the second word */
};

/* What the sums of a part begin with: all that they add up to is positive. */
#define FIRST_SUM (UINT32_C(1) << (FIELD - 1))
#define SECOND_SUM ((FIRST_SUM << ABOVE) + FIRST_SUM)

typedef uint32_t __attribute__((may_alias)) word;

/* A pixel's inputs: the first or the second of three is a word by itself, the third is added to both. */
static inline void put(word *to, int32_t value, int32_t third) {
  if (third != 0) {
    to[0] += (uint32_t)value << FIELD;
    to[1] += (uint32_t)value << ABOVE;
  } else {
    *to = (uint32_t)value;
  }
}
#endif

#include "tinyet_windows_body.h"

#ifdef SECOND_IN_BOTH
/* The second of three pixels is added above the first, where each is a word. */
static inline void add_second(word *patch, const tinyet_conv2d_shape *s) {
  for (word *const end = patch + STEP * (s->kernel_h * s->kernel_w * s->in_c); patch != end; patch += STEP) {
    patch[0] += patch[1] << FIELD;
  }
}
#define ABOVE_FIRST "y"
#define ABOVE_SECOND "21"
#define NEXT_TAP "8"
#define WORDS(a, b, c) (uint32_t)(a) + ((uint32_t)(b) << FIELD), (uint32_t)(b) + ((uint32_t)(c) << FIELD)
#else
/* The sums of three pixels, of what the two words of a part have added up to. */
static inline void add_three(uint32_t sums[3], uint32_t first, uint32_t second) {
  const uint32_t mask = (UINT32_C(1) << FIELD) - 1u, b = (second - (first >> FIELD << ABOVE)) & mask;
  sums[0] += first & mask;
  sums[1] += b;
  sums[2] += (second - b) >> ABOVE;
}

#define ABOVE_FIRST "z"
#define ABOVE_SECOND "10"
#define NEXT_TAP "16"
#define WORDS(a, b, c) (uint32_t)(a) + ((uint32_t)(c) << FIELD), (uint32_t)(b) + ((uint32_t)(c) << ABOVE)
#endif

/* The first or the second of three pixels, where its word is. */
static __attribute__((noinline)) void gather_one(word *patch, const int8_t *image, int32_t top, int32_t left,
                                                 const tinyet_conv2d_shape *s, int32_t padding) {
  gather(patch, image, top, left, s, padding, 0);
}

static __attribute__((noinline)) void gather_third(word *patch, const int8_t *image, int32_t top, int32_t left,
                                                   const tinyet_conv2d_shape *s, int32_t padding) {
  gather(patch, image, top, left, s, padding, 1);
}

/* Of three pixels whose windows, of taps without gaps, lie in the image. */
static __attribute__((noinline)) void gather_three(word *patch, const int8_t *a, const int8_t *b, const int8_t *c,
                                                   const tinyet_conv2d_shape *s) {
  const int32_t row = s->kernel_w * s->in_c, fours = row & ~3, turn = s->in_w * s->in_c - row;
  for (int32_t i = s->kernel_h; i > 0; i--) {
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2 && defined(__thumb__)
#define TAP(i)                                                                                                      \
  do {                                                                                                              \
    uint32_t x, y, z;                                                                                               \
    __asm__ volatile(                                                                                               \
        "ldrsb %[x], [%[a]], #1\n"                                                                                  \
        "ldrsb %[y], [%[b]], #1\n"                                                                                  \
        "ldrsb %[z], [%[c]], #1\n"                                                                                  \
        "add %[x], %[x], %[" ABOVE_FIRST "], lsl #21\n"                                                             \
        "add %[y], %[y], %[z], lsl #" ABOVE_SECOND "\n"                                                             \
        "strd %[x], %[y], [%[to]], #" NEXT_TAP "\n"                                                                 \
        : [x] "=&r"(x), [y] "=&r"(y), [z] "=&r"(z), [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c), [to] "+&r"(patch)   \
        :                                                                                                           \
        : "memory");                                                                                                \
  } while (0)
#define ON(by)
#else
#define TAP(i)                                                    \
  do {                                                            \
    const uint32_t words[2] = {WORDS(a[i], b[i], c[i])};          \
    patch[STEP * (i)] = words[0];                                 \
    patch[STEP * (i) + 1] = words[1];                             \
  } while (0)
#define ON(by) patch += STEP * (by), a += (by), b += (by), c += (by)
#endif
    for (const int8_t *const end = a + fours; a != end;) {
      TAP(0);
      TAP(1);
      TAP(2);
      TAP(3);
      ON(4);
    }
    if ((row & 2) != 0) {
      TAP(0);
      TAP(1);
      ON(2);
    }
    if ((row & 1) != 0) {
      TAP(0);
      ON(1);
    }
#undef TAP
#undef ON
    a += turn, b += turn, c += turn;
  }
}

#undef ABOVE_FIRST
#undef ABOVE_SECOND
#undef NEXT_TAP
#undef WORDS

/* Whether each window is a pixel of the image. */
static inline int32_t of_one_tap(const tinyet_conv2d_shape *s) {
  return s->kernel_h == 1 && s->kernel_w == 1 && s->stride_h == 1 && s->stride_w == 1 && s->pad_top == 0 && s->pad_left == 0 &&
         s->out_h == s->in_h && s->out_w == s->in_w;
}

/* Three pixels that lie one behind the other; where there are fewer, the last is the others, too. */
static inline __attribute__((always_inline)) void gather_pixels(word *patch, int32_t count, const int8_t *from,
                                                                const tinyet_conv2d_shape *s) {
  const int8_t *const second = count > 1 ? from + s->in_c : from;
  gather_three(patch, from, second, count > 2 ? second + s->in_c : second, s);
}

/* Three pixels' windows; where there are fewer, the last is the others, too. */
static inline __attribute__((always_inline)) void gather_next(word *patch, int32_t count, window_walk *walk,
                                                              const tinyet_conv2d_shape *s, int32_t padding) {
  const int32_t row = s->in_w * s->in_c, in_c = s->in_c, step = s->stride_w;
  const int32_t y = walk->row * s->stride_h - s->pad_top, x = walk->column * step - s->pad_left;
  if (count >= 3 && walk->column + 3 <= s->out_w && (x | y | (walk->lowest - y) | (walk->rightmost - x - 2 * step)) >= 0) {
    /* Of one row, and all in the image. */
    const int8_t *const first = walk->image + y * row + x * in_c, *const second = first + step * in_c;
    gather_three(patch, first, second, second + step * in_c, s);
    walk->column += 2;
    next_pixel(walk, s);
    return;
  }
  int32_t top[3], left[3], outside = 0;
  for (int32_t i = 0; i < 3; i++) {
    top[i] = walk->row * s->stride_h - s->pad_top;
    left[i] = walk->column * s->stride_w - s->pad_left;
    outside |= top[i] | left[i] | (walk->lowest - top[i]) | (walk->rightmost - left[i]);
    if (i + 1 < count || i == 2) {
      next_pixel(walk, s);
    }
  }
  if (outside >= 0) {
    gather_three(patch, walk->image + top[0] * row + left[0] * in_c, walk->image + top[1] * row + left[1] * in_c,
                 walk->image + top[2] * row + left[2] * in_c, s);
  } else {
    gather_one(patch, walk->image, top[0], left[0], s, padding);
    gather_one(patch + 1, walk->image, top[1], left[1], s, padding);
#ifdef SECOND_IN_BOTH
    add_second(patch, s);
#endif
    gather_third(patch, walk->image, top[2], left[2], s, padding);
  }
}

/* What `count` pixels from `pixel` on see, three at a time. one_tap: as of_one_tap has it. */
static inline __attribute__((always_inline)) void gather_windows(word *patch, int32_t pixel, int32_t count, int32_t one_tap,
                                                                 window_walk *walk, const tinyet_conv2d_shape *s,
                                                                 int32_t padding) {
  for (int32_t left = count; left > 0; left -= 3, pixel += 3, patch += 2) {
    if (one_tap) {
      gather_pixels(patch, left, walk->image + pixel * s->in_c, s);
    } else {
      gather_next(patch, left, walk, s, padding);
    }
  }
}

#endif
