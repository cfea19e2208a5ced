/* SPDX-License-Identifier: Apache-2.0 */
/* What windows of pixels see, some pixels a word or two. The file that includes this has defined `word`, of 32 bits; STEP,
 * words from tap to tap; and put(to, value, added), a pixel's input: a word by itself, or added to what others have there. */
#ifndef TINYET_WINDOWS_BODY_H
#define TINYET_WINDOWS_BODY_H

#include "tinyet_conv2d.h"

static inline __attribute__((always_inline)) word *copy(word *to, const int8_t *from, int32_t count, int32_t added) {
  for (; count >= 4; count -= 4) {
    put(to, from[0], added);
    put(to + STEP, from[1], added);
    put(to + 2 * STEP, from[2], added);
    put(to + 3 * STEP, from[3], added);
    to += 4 * STEP;
    from += 4;
  }
  for (; count > 0; count--) {
    put(to, *from++, added);
    to += STEP;
  }
  return to;
}

static inline __attribute__((always_inline)) word *fill(word *to, int32_t value, int32_t count, int32_t added) {
  for (; count > 0; count--) {
    put(to, value, added);
    to += STEP;
  }
  return to;
}

/* What the window of one pixel sees: of each row what lies left of the image, in it, and right of it. */
static inline __attribute__((always_inline)) void gather(word *patch, const int8_t *image, int32_t top, int32_t left,
                                                         const tinyet_conv2d_shape *s, int32_t padding, int32_t added) {
  const int32_t in_c = s->in_c, row = s->kernel_w * in_c, right = left + s->kernel_w - s->in_w;
  const int32_t before = left >= 0 ? 0 : -left < s->kernel_w ? -left * in_c : row;
  const int32_t behind = right <= 0 ? 0 : right < s->kernel_w ? right * in_c : row;
  const int32_t inside = row - before - behind;
  for (int32_t i = 0; i < s->kernel_h; i++) {
    const int32_t y = top + i * s->dilation_h;
    if (y < 0 || y >= s->in_h) {
      patch = fill(patch, padding, row, added);
    } else if (s->dilation_w == 1) {
      patch = fill(patch, padding, before, added);
      patch = copy(patch, image + y * s->in_w * in_c + left * in_c + before, inside, added);
      patch = fill(patch, padding, behind, added);
    } else {
      for (int32_t j = 0; j < s->kernel_w; j++) {
        const int32_t x = left + j * s->dilation_w;
        patch = x < 0 || x >= s->in_w ? fill(patch, padding, in_c, added)
                                      : copy(patch, image + (y * s->in_w + x) * in_c, in_c, added);
      }
    }
  }
}

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

#endif
