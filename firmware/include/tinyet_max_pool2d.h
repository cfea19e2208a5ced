/* SPDX-License-Identifier: Apache-2.0 */
/* Two-dimensional maximum pooling, NHWC. Padding never wins. */
#ifndef TINYET_MAX_POOL2D_H
#define TINYET_MAX_POOL2D_H

#include "tinyet_pool2d.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef tinyet_pool2d_shape tinyet_max_pool2d_params;

/* A window wholly in the padding gives -128. */
void tinyet_max_pool2d_s8(const int8_t *input, int8_t *output, const tinyet_max_pool2d_params *params);
void tinyet_max_pool2d_s16(const int16_t *input, int16_t *output, const tinyet_max_pool2d_params *params);

/* A window wholly in the padding gives minus infinity, one that holds a NaN gives NaN. */
void tinyet_max_pool2d_f32(const float *input, float *output, const tinyet_max_pool2d_params *params);

#ifdef __cplusplus
}
#endif

#endif
