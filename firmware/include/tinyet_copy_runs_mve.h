/* SPDX-License-Identifier: Apache-2.0 */
/* Strided copies of runs of bytes for cores with Helium, sixteen bytes at a time. */
#ifndef TINYET_COPY_RUNS_MVE_H
#define TINYET_COPY_RUNS_MVE_H

#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TINYET_COPY_RUNS_LOOPS 4

/* Loops outermost first; unused ones are outermost with size 1. Strides and offset in bytes; a stride of 0 repeats, a negative one
 * goes back. The innermost loop's steps are `bytes` each. */
typedef struct {
  int32_t in_offset, bytes;
  int32_t size[TINYET_COPY_RUNS_LOOPS];
  int32_t in_stride[TINYET_COPY_RUNS_LOOPS];
  int32_t out_stride[TINYET_COPY_RUNS_LOOPS];
} tinyet_copy_runs_mve_params;

/* The output is not the input. */
void tinyet_copy_runs_mve(const void *input, void *output, const tinyet_copy_runs_mve_params *params);

#ifdef __cplusplus
}
#endif

#endif
