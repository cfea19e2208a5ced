/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing of an image, NHWC. Where each output sample lies is in tables made ahead of time. */
#ifndef TINYET_RESIZE_H
#define TINYET_RESIZE_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t batch;
  int32_t image_bytes;
  int32_t out_h, out_w;
  int32_t pixel_bytes;
  const TINYET_ROM int32_t *rows;    /* [out_h], bytes from the image's start */
  const TINYET_ROM int32_t *columns; /* [out_w], bytes from the row's start */
} tinyet_resize_nearest_params;

typedef struct {
  int32_t batch;
  int32_t in_h, in_w, channels;
  int32_t out_h, out_w;
  const TINYET_ROM int32_t *rows; /* [out_h][2], elements from the image's start: the row above and the row below */
  const TINYET_ROM int16_t *row_weights;    /* [out_h], of the row below, in 1/1024 */
  const TINYET_ROM int32_t *columns;        /* [out_w][2], elements from the row's start: left and right */
  const TINYET_ROM int16_t *column_weights; /* [out_w], of the pixel on the right */
} tinyet_resize_bilinear_integer_params;

typedef struct {
  int32_t batch;
  int32_t in_h, in_w, channels;
  int32_t out_h, out_w;
  const TINYET_ROM int32_t *rows;
  const TINYET_ROM float *row_weights;
  const TINYET_ROM int32_t *columns;
  const TINYET_ROM float *column_weights;
} tinyet_resize_bilinear_f32_params;

/* Elements of any size. */
void tinyet_resize_nearest(const void *input, void *output, const tinyet_resize_nearest_params *params);

void tinyet_resize_bilinear_s8(const int8_t *input, int8_t *output,
                               const tinyet_resize_bilinear_integer_params *params);
void tinyet_resize_bilinear_s16(const int16_t *input, int16_t *output,
                                const tinyet_resize_bilinear_integer_params *params);

/* First along the row, then between the rows: a * (1 - weight) + b * weight. */
void tinyet_resize_bilinear_f32(const float *input, float *output, const tinyet_resize_bilinear_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
