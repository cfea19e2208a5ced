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

static inline __attribute__((always_inline)) word *copy(word *to, const int8_t *from, int32_t count, int32_t pixel) {
  for (; count >= 4; count -= 4) {
    put(to, from[0], pixel);
    put(to + STEP, from[1], pixel);
    put(to + 2 * STEP, from[2], pixel);
    put(to + 3 * STEP, from[3], pixel);
    to += 4 * STEP;
    from += 4;
  }
  for (; count > 0; count--) {
    put(to, *from++, pixel);
    to += STEP;
  }
  return to;
}

static inline __attribute__((always_inline)) word *fill(word *to, int32_t value, int32_t count, int32_t pixel) {
  for (; count > 0; count--) {
    put(to, value, pixel);
    to += STEP;
  }
  return to;
}

/* What the window of one pixel sees: of each row what lies left of the image, in it, and right of it. */
static inline __attribute__((always_inline)) void gather(word *patch, const int8_t *image, int32_t top, int32_t left,
                                                         const tinyet_conv2d_shape *s, int32_t padding, int32_t pixel) {
  const int32_t in_c = s->in_c, row = s->kernel_w * in_c, right = left + s->kernel_w - s->in_w;
  const int32_t before = left >= 0 ? 0 : -left < s->kernel_w ? -left * in_c : row;
  const int32_t behind = right <= 0 ? 0 : right < s->kernel_w ? right * in_c : row;
  const int32_t inside = row - before - behind;
  for (int32_t i = 0; i < s->kernel_h; i++) {
    const int32_t y = top + i * s->dilation_h;
    if (y < 0 || y >= s->in_h) {
      patch = fill(patch, padding, row, pixel);
    } else if (s->dilation_w == 1) {
      patch = fill(patch, padding, before, pixel);
      patch = copy(patch, image + y * s->in_w * in_c + left * in_c + before, inside, pixel);
      patch = fill(patch, padding, behind, pixel);
    } else {
      for (int32_t j = 0; j < s->kernel_w; j++) {
        const int32_t x = left + j * s->dilation_w;
        patch = x < 0 || x >= s->in_w ? fill(patch, padding, in_c, pixel)
                                      : copy(patch, image + (y * s->in_w + x) * in_c, in_c, pixel);
      }
    }
  }
}

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

#endif

/* How the windows of an image are walked, pixel after pixel. */
typedef struct {
  const int8_t *image;
  int32_t lowest, rightmost; /* the last place of a window that lies in the image; none where taps have gaps */
  int32_t row, column;       /* of the next pixel */
} window_walk;

static inline __attribute__((always_inline)) window_walk first_window(const int8_t *image, const tinyet_conv2d_shape *s) {
  const window_walk walk = {image, s->dilation_h == 1 && s->dilation_w == 1 ? s->in_h - s->kernel_h : -1,
                            s->in_w - s->kernel_w, 0, 0};
  return walk;
}

static inline __attribute__((always_inline)) void next_pixel(window_walk *walk, const tinyet_conv2d_shape *s) {
  if (++walk->column == s->out_w) {
    walk->column = 0, walk->row++;
  }
}

#ifndef TINYET_PAIRED_CHECKED
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
