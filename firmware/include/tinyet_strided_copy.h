/* SPDX-License-Identifier: Apache-2.0 */
/* One strided copy: permute, slice, expand, flip and unfold differ only in the strides, which are worked out ahead of
 * time. */
#ifndef TINYET_STRIDED_COPY_H
#define TINYET_STRIDED_COPY_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TINYET_STRIDED_COPY_LOOPS 6

/* Loops outermost first; unused ones are outermost with size 1. Strides and offset in elements; a stride of 0 repeats,
 * a negative one goes back. */
typedef struct {
  int32_t in_offset;
  int32_t size[TINYET_STRIDED_COPY_LOOPS];
  int32_t in_stride[TINYET_STRIDED_COPY_LOOPS];
  int32_t out_stride[TINYET_STRIDED_COPY_LOOPS];
} tinyet_strided_copy_params;

/* Elements of 1, 2 or 4 bytes, of any type. Both pointers are aligned to an element; the output is not the input. */
void tinyet_strided_copy_x8(const void *input, void *output, const tinyet_strided_copy_params *params);
void tinyet_strided_copy_x16(const void *input, void *output, const tinyet_strided_copy_params *params);
void tinyet_strided_copy_x32(const void *input, void *output, const tinyet_strided_copy_params *params);

#ifdef __cplusplus
}
#endif

#endif
