/* SPDX-License-Identifier: Apache-2.0 */
/* What windows of a row see of an image, as words with their signs, column by column: those of neighbouring windows share
 * columns. Of tinyet_conv2d_s8_packed_twos.c. */
#ifndef TINYET_PACKED_TWOS_COLUMNS_BODY_H
#define TINYET_PACKED_TWOS_COLUMNS_BODY_H

#include "tinyet_packed_twos.h"

/* What lies in the image of a column of windows: `count` rows from `from`, `step` bytes apart. */
typedef struct {
  const int8_t *from;
  int32_t above, count, below; /* rows */
  int32_t step;
} column_rows;

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
/* `count` bytes, a multiple of four, of each row until `end`; `between`: from behind one row's to the next one's. */
__attribute__((naked, noinline)) static void fours_widened(int32_t *to __attribute__((unused)),
                                                           const int8_t *from __attribute__((unused)),
                                                           int32_t count __attribute__((unused)),
                                                           int32_t between __attribute__((unused)),
                                                           const int32_t *end __attribute__((unused))) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4, r5, r6, r7, lr}\n"
      "mov r7, r3\n"
      "ldr r3, [sp, #20]\n"
      "mov r12, r3\n"
      "lsls r2, r2, #2\n"
      "mov lr, r2\n"
      "1:\n"
      "mov r2, lr\n"
      "adds r2, r0, r2\n"
      "2:\n"
      "ldmia r1!, {r6}\n"
      "sxtb r3, r6\n"
      "lsls r4, r6, #16\n"
      "asrs r4, r4, #24\n"
      "lsls r5, r6, #8\n"
      "asrs r5, r5, #24\n"
      "asrs r6, r6, #24\n"
      "stmia r0!, {r3, r4, r5, r6}\n"
      "cmp r0, r2\n"
      "bne 2b\n"
      "adds r1, r1, r7\n"
      "cmp r0, r12\n"
      "bne 1b\n"
      "pop {r4, r5, r6, r7, pc}\n");
}

/* Words to lower addresses, four at a time: as many more as that needs. */
__attribute__((naked, noinline)) static void moved_down(int32_t *to __attribute__((unused)),
                                                        const int32_t *from __attribute__((unused)),
                                                        const int32_t *end __attribute__((unused))) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4, r5, r6, lr}\n"
      "1:\n"
      "ldmia r1!, {r3, r4, r5, r6}\n"
      "stmia r0!, {r3, r4, r5, r6}\n"
      "cmp r0, r2\n"
      "blo 1b\n"
      "pop {r4, r5, r6, pc}\n");
}

/* What neighbouring columns of windows have of an image of fewer than four channels. */
typedef struct {
  const int8_t *from;
  int32_t step;        /* bytes from row to row */
  int32_t back;        /* bytes from behind the last row to the next column's first one */
  int32_t bytes;       /* of a column's words */
  const int32_t *last; /* end of all words */
} few_columns;

/* Words to r0, inputs at r1, in r5 to r7 0, 1 and 2; in r8 to r10 step, back and bytes, in r12 where a column's words
 * end, in lr where all do. */
#define FEW(name, INPUTS)                                                                \
  __attribute__((naked, noinline)) static void name(int32_t *to __attribute__((unused)), \
                                                    const few_columns *columns __attribute__((unused))) { \
    __asm__ volatile(                                                                    \
        ".syntax unified\n"                                                              \
        "push {r4, r5, r6, r7, lr}\n"                                                    \
        "mov r4, r8\n"                                                                   \
        "mov r5, r9\n"                                                                   \
        "mov r6, r10\n"                                                                  \
        "push {r4, r5, r6}\n"                                                            \
        "ldmia r1!, {r2, r3, r4, r5, r6}\n"                                              \
        "mov r8, r3\n"                                                                   \
        "mov r9, r4\n"                                                                   \
        "mov r10, r5\n"                                                                  \
        "mov lr, r6\n"                                                                   \
        "mov r1, r2\n"                                                                   \
        "movs r5, #0\n"                                                                  \
        "movs r6, #1\n"                                                                  \
        "movs r7, #2\n"                                                                  \
        "1:\n"                                                                           \
        "mov r12, r0\n"                                                                  \
        "add r12, r10\n"                                                                 \
        "2:\n"                                                                           \
        INPUTS                                                                           \
        "add r1, r8\n"                                                                   \
        "cmp r0, r12\n"                                                                  \
        "bne 2b\n"                                                                       \
        "add r1, r9\n"                                                                   \
        "cmp r0, lr\n"                                                                   \
        "bne 1b\n"                                                                       \
        "pop {r4, r5, r6}\n"                                                             \
        "mov r8, r4\n"                                                                   \
        "mov r9, r5\n"                                                                   \
        "mov r10, r6\n"                                                                  \
        "pop {r4, r5, r6, r7, pc}\n");                                                   \
  }

FEW(of_one, "ldrsb r2, [r1, r5]\n" "stmia r0!, {r2}\n")
FEW(of_two, "ldrsb r2, [r1, r5]\n" "ldrsb r3, [r1, r6]\n" "stmia r0!, {r2, r3}\n")
FEW(of_three, "ldrsb r2, [r1, r5]\n" "ldrsb r3, [r1, r6]\n" "ldrsb r4, [r1, r7]\n" "stmia r0!, {r2, r3, r4}\n")
#undef FEW

/* So many neighbouring columns of `rows` rows each, of one to three channels; gives where their words end. */
static int32_t *few(int32_t *to, const int8_t *from, int32_t count, int32_t step, int32_t rows, int32_t channels) {
  const int32_t of_column = rows * channels;
  int32_t *const last = to + count * of_column;
  const few_columns columns = {from, step, channels - rows * step, 4 * of_column, last};
  if (channels == 3) {
    of_three(to, &columns);
  } else if (channels == 2) {
    of_two(to, &columns);
  } else {
    of_one(to, &columns);
  }
  return last;
}
#else
typedef uint32_t __attribute__((may_alias)) word;

static void fours_widened(int32_t *to, const int8_t *from, int32_t count, int32_t between, const int32_t *end) {
  while (to != end) {
    for (const int32_t *const row = to + count; to != row; to += 4) {
      const uint32_t four = *(const word *)(const void *)from;
      to[0] = (int8_t)four;
      to[1] = (int8_t)(four >> 8);
      to[2] = (int8_t)(four >> 16);
      to[3] = (int8_t)(four >> 24);
      from += 4;
    }
    from += between;
  }
}

static void moved_down(int32_t *to, const int32_t *from, const int32_t *end) {
  while (to < end) {
    *to++ = *from++;
  }
}

static int32_t *few(int32_t *to, const int8_t *from, int32_t count, int32_t step, int32_t rows, int32_t channels) {
  for (; count > 0; count--) {
    const int8_t *row = from;
    for (int32_t y = 0; y < rows; y++) {
      for (int32_t c = 0; c < channels; c++) {
        *to++ = row[c];
      }
      row += step;
    }
    from += channels;
  }
  return to;
}
#endif

/* Bytes as words with their signs; gives where they end. fours: whether bytes and their number are multiples of four. */
static int32_t *widened(int32_t *to, const int8_t *from, int32_t count, int32_t between, int32_t rows, int32_t fours) {
  int32_t *const end = to + rows * count;
  if (fours != 0) {
    fours_widened(to, from, count, between, end);
    return end;
  }
  while (to != end) {
    const int32_t *const row = to + count;
    for (; row - to >= 4; to += 4) {
      to[0] = from[0];
      to[1] = from[1];
      to[2] = from[2];
      to[3] = from[3];
      from += 4;
    }
    while (to != row) {
      *to++ = *from++;
    }
    from += between;
  }
  return end;
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

/* Of an image, what windows see whose first row is `top`. */
static column_rows rows_at(const int8_t *image, int32_t top, const tinyet_conv2d_shape *s) {
  const int32_t step = s->in_w * s->in_c;
  column_rows found = {image, 0, 0, s->kernel_h, s->dilation_h * step};
  int32_t y = top;
  for (; found.below > 0 && y < 0; y += s->dilation_h) {
    found.above++;
    found.below--;
  }
  if (y >= 0 && y < s->in_h) {
    found.from += y * step;
  }
  for (; found.below > 0 && y < s->in_h; y += s->dilation_h) {
    found.count++;
    found.below--;
  }
  return found;
}

/* A column of windows, row by row. */
static int32_t *column(int32_t *to, const column_rows *rows, int32_t x, const tinyet_conv2d_shape *s, int32_t padding,
                       int32_t fours) {
  const int32_t channels = s->in_c;
  if (x < 0 || x >= s->in_w || rows->count == 0) {
    return filled(to, padding, s->kernel_h * channels);
  }
  if (rows->above != 0) {
    to = filled(to, padding, rows->above * channels);
  }
  to = widened(to, rows->from + x * channels, channels, rows->step - channels, rows->count, fours);
  if (rows->below != 0) {
    to = filled(to, padding, rows->below * channels);
  }
  return to;
}

/* Neighbouring columns of windows, of which those that lie in the image with all of their rows are gathered at once
 * where a row is few inputs, or all there is. */
static int32_t *columns_from(int32_t *to, const column_rows *rows, int32_t x, int32_t count, const tinyet_conv2d_shape *s,
                             int32_t padding, int32_t fours) {
  const int32_t channels = s->in_c, whole = rows->count == s->kernel_h && (channels < 4 || s->kernel_h == 1) ? 1 : 0;
  while (count > 0) {
    int32_t done = 1;
    if (whole != 0 && x >= 0 && x < s->in_w) {
      const int8_t *const from = rows->from + x * channels;
      done = count < s->in_w - x ? count : s->in_w - x;
      to = s->kernel_h == 1 ? widened(to, from, done * channels, 0, 1, fours)
                            : few(to, from, done, rows->step, rows->count, channels);
    } else {
      to = column(to, rows, x, s, padding, fours);
    }
    x += done;
    count -= done;
  }
  return to;
}

#endif
