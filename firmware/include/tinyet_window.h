/* SPDX-License-Identifier: Apache-2.0 */
/* Which taps of a sliding window lie inside the image, along one dimension. */
#ifndef TINYET_WINDOW_H
#define TINYET_WINDOW_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t start; /* coordinate of the first tap inside the image; meaningless when count is 0 */
  int32_t first; /* its number in the window */
  int32_t count; /* taps inside the image */
} tinyet_span;

/* The window of `kernel` taps, `dilation` apart, whose tap 0 is at coordinate `start` of an image of `size`. */
#define TINYET_SPAN_INSIDE(name, span_type, number)                                                \
  static inline span_type name(number start, number kernel, number dilation, number size) {      \
    span_type span = {start, 0, kernel};                                                           \
    if (start >= 0 && start + (kernel - 1) * dilation < size) {                                    \
      return span;                                                                                 \
    }                                                                                              \
    span.count = 0;                                                                                \
    while (span.start < 0 && span.first < kernel) {                                                \
      span.start += dilation;                                                                      \
      span.first++;                                                                                \
    }                                                                                              \
    for (number at = span.start; at < size && span.first + span.count < kernel; at += dilation) { \
      span.count++;                                                                                \
    }                                                                                              \
    return span;                                                                                   \
  }

TINYET_SPAN_INSIDE(tinyet_span_inside, tinyet_span, int32_t)

/* The same in extents. */
#ifdef __AVR__
typedef struct {
  tinyet_extent start, first, count;
} tinyet_short_span;

TINYET_SPAN_INSIDE(tinyet_short_span_inside, tinyet_short_span, tinyet_extent)
#else
typedef tinyet_span tinyet_short_span;
#define tinyet_short_span_inside tinyet_span_inside
#endif

#ifdef __cplusplus
}
#endif

#endif
