/* SPDX-License-Identifier: Apache-2.0 */
/* What pooling with a sliding window has in common, NHWC. */
#ifndef TINYET_POOL2D_H
#define TINYET_POOL2D_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t batch;
  int32_t in_h, in_w, channels;
  int32_t out_h, out_w;
  int32_t kernel_h, kernel_w;
  int32_t stride_h, stride_w;
  int32_t dilation_h, dilation_w;
  int32_t pad_top, pad_left;
} tinyet_pool2d_shape;

#ifdef __cplusplus
}
#endif

#endif
