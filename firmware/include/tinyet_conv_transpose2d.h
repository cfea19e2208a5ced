/* SPDX-License-Identifier: Apache-2.0 */
/* Two-dimensional transposed convolution, NHWC. Weights are [out_c][kernel_h][kernel_w][in_c / groups]. */
#ifndef TINYET_CONV_TRANSPOSE2D_H
#define TINYET_CONV_TRANSPOSE2D_H

#include "tinyet_common.h"
#include "tinyet_conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Along one dimension, output coordinate q * stride + phase is reached by tap first + m * tap_step from input coordinate
 * base + q - m * in_step, m = 0, 1, ...; the tables hold (first, base) for each phase. */
typedef struct {
  int32_t batch;
  int32_t in_h, in_w, in_c;
  int32_t out_h, out_w, out_c;
  int32_t kernel_h, kernel_w;
  int32_t stride_h, stride_w;
  int32_t tap_step_h, tap_step_w;
  int32_t in_step_h, in_step_w;
  int32_t groups;
  const TINYET_ROM int32_t *row_phases;    /* [stride_h][2] */
  const TINYET_ROM int32_t *column_phases; /* [stride_w][2] */
} tinyet_conv_transpose2d_shape;

typedef struct {
  tinyet_conv_transpose2d_shape shape;
  tinyet_conv2d_s8_quant quant; /* the bias is not folded: the taps of an output pixel differ */
} tinyet_conv_transpose2d_s8_params;

typedef struct {
  tinyet_conv_transpose2d_shape shape;
  tinyet_conv2d_s16_quant quant;
} tinyet_conv_transpose2d_s16_params;

typedef struct {
  tinyet_conv_transpose2d_shape shape;
  tinyet_conv2d_f32_values values;
} tinyet_conv_transpose2d_f32_params;

/* One tap that reaches an output pixel: where it reads the image and the weights of a channel, in elements. */
typedef struct {
  int32_t input, weight;
} tinyet_conv_transpose2d_tap;

/* The taps of one output pixel, in the order of the kernel; gives their number. row and column: the phase's table entry
 * and the quotient q of the output coordinate. */
static inline int32_t tinyet_conv_transpose2d_taps(const tinyet_conv_transpose2d_shape *s,
                                                   const TINYET_ROM int32_t *row, int32_t row_q,
                                                   const TINYET_ROM int32_t *column, int32_t column_q,
                                                   tinyet_conv_transpose2d_tap *taps) {
  const int32_t depth = s->in_c / s->groups;
  int32_t count = 0;
  for (int32_t i = row[0], y = row[1] + row_q; i < s->kernel_h; i += s->tap_step_h, y -= s->in_step_h) {
    if (y < 0 || y >= s->in_h) {
      continue;
    }
    for (int32_t j = column[0], x = column[1] + column_q; j < s->kernel_w; j += s->tap_step_w, x -= s->in_step_w) {
      if (x >= 0 && x < s->in_w) {
        taps[count].input = (y * s->in_w + x) * s->in_c;
        taps[count].weight = (i * s->kernel_w + j) * depth;
        count++;
      }
    }
  }
  return count;
}

/* scratch: a tinyet_conv_transpose2d_tap for each tap that can reach one output pixel. */
void tinyet_conv_transpose2d_s8(const int8_t *input, int8_t *output, void *scratch,
                                const tinyet_conv_transpose2d_s8_params *params);

void tinyet_conv_transpose2d_s16(const int16_t *input, int16_t *output, void *scratch,
                                 const tinyet_conv_transpose2d_s16_params *params);

/* Sums in the order bias, kernel row, kernel column, channel. */
void tinyet_conv_transpose2d_f32(const float *input, float *output, void *scratch,
                                 const tinyet_conv_transpose2d_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
