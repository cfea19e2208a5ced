/* SPDX-License-Identifier: Apache-2.0 */
/* Concatenation: each input is written into its columns of the output. Generated code calls this once an input. */
#ifndef TINYET_CONCAT_H
#define TINYET_CONCAT_H

#include <string.h>

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `rows` rows of `width` bytes, contiguous in the input, `stride` bytes apart in the output from byte `offset` on.
 * One row after another: the output may lie over rows of the input that have been copied, not over one that is. */
static inline void tinyet_concat_part(const void *input, void *output, size_t offset, size_t width, size_t stride,
                                      size_t rows) {
  const uint8_t *in = (const uint8_t *)input;
  uint8_t *out = (uint8_t *)output + offset;
  if (width == stride) {
    memcpy(out, in, rows * width);
    return;
  }
  for (size_t row = 0; row < rows; row++) {
    memcpy(out, in, width);
    in += width;
    out += stride;
  }
}

#ifdef __cplusplus
}
#endif

#endif
