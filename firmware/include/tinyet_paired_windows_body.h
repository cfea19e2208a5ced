/* SPDX-License-Identifier: Apache-2.0 */
/* What windows of pixels see, two pixels a word, 2^16 b + a. The file that includes this has defined STEP, words from tap to
 * tap, and CHECK: zero, or which word of a tap has what the upper pixels of all others are, the i-th times 16^i. */
#ifndef TINYET_PAIRED_WINDOWS_BODY_H
#define TINYET_PAIRED_WINDOWS_BODY_H

#include "tinyet_conv2d.h"

typedef uint32_t __attribute__((may_alias)) word;

/* A pixel's inputs: the first of two, an even one, is a word by itself, to which the second is added. */
static inline void put(word *to, int32_t value, int32_t pixel) {
  *to = (pixel & 1) != 0 ? *to + ((uint32_t)value << 16) : (uint32_t)value;
  if (CHECK != 0) {
    word *const check = to + CHECK - pixel / 2;
    *check = (pixel == 0 ? 0u : *check) + ((pixel & 1) != 0 ? (uint32_t)value << 2 * (pixel - 1) : 0u);
  }
}

#include "tinyet_windows_body.h"

#ifndef TINYET_PAIRED_CHECKED
static __attribute__((noinline)) void gather_first(word *patch, const int8_t *image, int32_t top, int32_t left,
                                                   const tinyet_conv2d_shape *s, int32_t padding) {
  gather(patch, image, top, left, s, padding, 0);
}

static __attribute__((noinline)) void gather_second(word *patch, const int8_t *image, int32_t top, int32_t left,
                                                    const tinyet_conv2d_shape *s, int32_t padding) {
  gather(patch, image, top, left, s, padding, 1);
}

/* Of both pixels of a pair whose windows, of taps without gaps, lie in the image. */
static __attribute__((noinline)) void gather_two(word *patch, const int8_t *first, const int8_t *second,
                                                 const tinyet_conv2d_shape *s) {
  const int32_t row = s->kernel_w * s->in_c, turn = s->in_w * s->in_c - row;
  for (int32_t i = s->kernel_h; i > 0; i--) {
    int32_t left = row;
#define TAP(i) patch[STEP * (i)] = (uint32_t)first[i] + ((uint32_t)second[i] << 16)
    for (; left >= 4; left -= 4) {
      TAP(0);
      TAP(1);
      TAP(2);
      TAP(3);
      patch += 4 * STEP;
      first += 4;
      second += 4;
    }
    for (; left > 0; left--) {
      TAP(0);
      patch += STEP;
      first++;
      second++;
    }
#undef TAP
    first += turn;
    second += turn;
  }
}

/* The windows of the next pixels, two a word. */
static inline __attribute__((always_inline)) void gather_windows(word *patch, int32_t count, window_walk *walk,
                                                                 const tinyet_conv2d_shape *s, int32_t padding) {
  for (int32_t i = 0; i < count; i += 2) {
    const int32_t top = walk->row * s->stride_h - s->pad_top, left = walk->column * s->stride_w - s->pad_left;
    next_pixel(walk, s);
    const int32_t next_top = walk->row * s->stride_h - s->pad_top, next_left = walk->column * s->stride_w - s->pad_left;
    if (i + 1 < count) {
      next_pixel(walk, s);
    }
    if (top >= 0 && next_top <= walk->lowest && left >= 0 && left <= walk->rightmost && next_left >= 0 &&
        next_left <= walk->rightmost) {
      gather_two(patch + i / 2, walk->image + (top * s->in_w + left) * s->in_c,
                 walk->image + (next_top * s->in_w + next_left) * s->in_c, s);
    } else {
      gather_first(patch + i / 2, walk->image, top, left, s, padding);
      if (i + 1 < count) {
        gather_second(patch + i / 2, walk->image, next_top, next_left, s, padding);
      }
    }
  }
}
#endif

#endif
