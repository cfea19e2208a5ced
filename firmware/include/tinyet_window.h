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
static inline tinyet_span tinyet_span_inside(int32_t start, int32_t kernel, int32_t dilation, int32_t size) {
  tinyet_span span = {start, 0, kernel};
  if (start >= 0 && start + (kernel - 1) * dilation < size) {
    return span;
  }
  span.count = 0;
  while (span.start < 0 && span.first < kernel) {
    span.start += dilation;
    span.first++;
  }
  for (int32_t at = span.start; at < size && span.first + span.count < kernel; at += dilation) {
    span.count++;
  }
  return span;
}

#ifdef __cplusplus
}
#endif

#endif
