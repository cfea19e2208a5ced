/* SPDX-License-Identifier: Apache-2.0 */
/* Images of depthwise layers into planes of four channels, a word a pixel, so that an input is a known number of bytes behind
 * its neighbour. The file that includes this may have defined SIGNS, what changes the sign of each byte of a word that is copied. */
#ifndef TINYET_PLANE_COPIES_BODY_H
#define TINYET_PLANE_COPIES_BODY_H

#include <stdint.h>

/* The part of a plane that lies in the image, and how the image goes on. */
typedef struct {
  int32_t rows, width;
  int32_t columns;  /* words from row to row of the plane */
  int32_t in_row;   /* bytes from row to row of the image, or column to column where those are the plane's rows */
  int32_t channels; /* bytes from pixel to pixel of the image, along a row of the plane */
} inside;

#ifndef SIGNS
#define SIGNS UINT32_C(0)
#endif

enum { TOGETHER = 4 /* channels whose images are in a plane */ };

typedef uint32_t __attribute__((may_alias)) word;

/* Rows or columns that windows see, of `size`; none where all that they see is padding. */
static inline int32_t seen(int32_t size, int32_t most) {
  const int32_t there = most > 0 ? most : 0;
  return size < there ? size : there;
}

/* Of one channel, to its byte of each word. */
static void copy_one(int8_t *plane, const int8_t *image, const inside *part) {
  const int32_t channels = part->channels, width = part->width;
  const int32_t gap = TOGETHER * (part->columns - width), turn = part->in_row - width * channels;
  for (int32_t y = part->rows; y > 0; y--) {
    for (int32_t i = width; i > 0; i--) {
      *plane = (int8_t)(*image ^ (int8_t)(SIGNS >> 24));
      plane += TOGETHER;
      image += channels;
    }
    plane += gap;
    image += turn;
  }
}

/* Of four channels, whose image is read by words. */
static void copy_four(word *plane, const int8_t *image, const inside *part) {
  const int32_t channels = part->channels, width = part->width, fours = width / 4, rest = width & 3;
  const int32_t gap = part->columns - width, turn = part->in_row - width * channels;
#define WORD(i)                                                  \
  do {                                                           \
    plane[i] = *(const word *)(const void *)image ^ SIGNS;       \
    image += channels;                                           \
  } while (0)
  for (int32_t y = part->rows; y > 0; y--) {
    for (int32_t i = fours; i > 0; i--) {
      WORD(0);
      WORD(1);
      WORD(2);
      WORD(3);
      plane += 4;
    }
    if ((rest & 2) != 0) {
      WORD(0);
      WORD(1);
      plane += 2;
    }
    if ((rest & 1) != 0) {
      WORD(0);
      plane++;
    }
    plane += gap;
    image += turn;
  }
#undef WORD
}

/* So many channels, up to four, from the one at `image` on. words: whether they are four that can be read so. */
static void copy_together(int8_t *plane, const int8_t *image, int32_t count, int32_t words, const inside *part) {
  if (words != 0) {
    copy_four((word *)(void *)plane, image, part);
    return;
  }
  for (int32_t i = 0; i < count; i++) {
    copy_one(plane + i, image + i, part);
  }
}

/* Whether all channels of an image can be read by words. */
static inline int32_t by_words(const int8_t *image, int32_t channels) {
  return (channels & (TOGETHER - 1)) == 0 && ((uintptr_t)image & (TOGETHER - 1)) == 0;
}

#endif
