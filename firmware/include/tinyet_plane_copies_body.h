/* SPDX-License-Identifier: Apache-2.0 */
/* Images of depthwise layers into planes, a channel at a time or four. The file that includes this may have defined SIGNS, what
 * changes the sign of each byte of a word that is copied. */
#ifndef TINYET_PLANE_COPIES_BODY_H
#define TINYET_PLANE_COPIES_BODY_H

#include <stdint.h>

/* The part of a plane that lies in the image, and how the image goes on. */
typedef struct {
  int32_t rows, width;
  int32_t columns;  /* bytes from row to row of the plane */
  int32_t in_row;   /* bytes from row to row of the image, or column to column where those are the plane's rows */
  int32_t channels; /* bytes from pixel to pixel of the image, along a row of the plane */
} inside;

#ifndef SIGNS
#define SIGNS UINT32_C(0)
#endif

static inline void copy(int8_t *plane, const int8_t *image, const inside *part) {
  const int32_t channels = part->channels, width = part->width, fours = width / 4, rest = width & 3;
  const int32_t gap = part->columns - width, turn = part->in_row - width * channels;
#define BYTE(i)        \
  do {                 \
    plane[i] = (int8_t)(*image ^ (int8_t)(SIGNS >> 24)); \
    image += channels; \
  } while (0)
  for (int32_t y = part->rows; y > 0; y--) {
    for (int32_t i = fours; i > 0; i--) {
      BYTE(0);
      BYTE(1);
      BYTE(2);
      BYTE(3);
      plane += 4;
    }
    if ((rest & 2) != 0) {
      BYTE(0);
      BYTE(1);
      plane += 2;
    }
    if ((rest & 1) != 0) {
      BYTE(0);
      plane++;
    }
    plane += gap;
    image += turn;
  }
#undef BYTE
}

enum { TOGETHER = 4 /* channels whose images are copied at once, a word a pixel */ };

typedef uint32_t __attribute__((may_alias)) word;

static void copy_four(int8_t *plane, int32_t size, const int8_t *image, const inside *part) {
  const int32_t channels = part->channels, width = part->width, fours = width / 4, rest = width & 3;
  const int32_t gap = part->columns - width, turn = part->in_row - width * channels;
  int8_t *second = plane + size, *third = second + size, *fourth = third + size;
#define WORD(i)                                              \
  do {                                                       \
    const uint32_t four = *(const word *)(const void *)image ^ SIGNS; \
    plane[i] = (int8_t)(uint8_t)four;                        \
    second[i] = (int8_t)(uint8_t)(four >> 8);                \
    third[i] = (int8_t)(uint8_t)(four >> 16);                \
    fourth[i] = (int8_t)(uint8_t)(four >> 24);               \
    image += channels;                                       \
  } while (0)
#define MOVE(by) plane += (by), second += (by), third += (by), fourth += (by)
  for (int32_t y = part->rows; y > 0; y--) {
    for (int32_t i = fours; i > 0; i--) {
      WORD(0);
      WORD(1);
      WORD(2);
      WORD(3);
      MOVE(4);
    }
    for (int32_t i = rest; i > 0; i--) {
      WORD(0);
      MOVE(1);
    }
    MOVE(gap);
    image += turn;
  }
#undef WORD
#undef MOVE
}

#endif
