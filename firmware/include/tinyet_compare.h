/* SPDX-License-Identifier: Apache-2.0 */
/* 1 where a relation holds between the elements of two operands, 0 elsewhere. */
#ifndef TINYET_COMPARE_H
#define TINYET_COMPARE_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t count;
  int32_t a_step, b_step; /* 1, or 0 where one element serves for all */
} tinyet_compare_params;

/* The output is neither operand. With a NaN only not_equal holds. */
void tinyet_equal_f32(const float *a, const float *b, int32_t *output, const tinyet_compare_params *params);
void tinyet_not_equal_f32(const float *a, const float *b, int32_t *output, const tinyet_compare_params *params);
void tinyet_greater_f32(const float *a, const float *b, int32_t *output, const tinyet_compare_params *params);
void tinyet_greater_equal_f32(const float *a, const float *b, int32_t *output, const tinyet_compare_params *params);
void tinyet_equal_s32(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_compare_params *params);
void tinyet_not_equal_s32(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_compare_params *params);
void tinyet_greater_s32(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_compare_params *params);
void tinyet_greater_equal_s32(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_compare_params *params);

#ifdef __cplusplus
}
#endif

#endif
