/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of two int32, element by element. */
#ifndef TINYET_BINARY_S32_H
#define TINYET_BINARY_S32_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t count;
  int32_t a_step, b_step; /* 1, or 0 where one element serves for all */
} tinyet_binary_s32_params;

/* What leaves 32 bits is wrapped; division by 0 gives 0. div rounds towards zero, the rest of floor_mod has the divisor's
 * sign; shift_right keeps the sign, and a shift by less than 0 or more than 31 bits moves all of them out. The output is neither operand. */
void tinyet_add_s32(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_binary_s32_params *params);
void tinyet_sub_s32(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_binary_s32_params *params);
void tinyet_mul_s32(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_binary_s32_params *params);
void tinyet_div_s32(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_binary_s32_params *params);
void tinyet_floor_div_s32(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_binary_s32_params *params);
void tinyet_floor_mod_s32(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_binary_s32_params *params);
void tinyet_maximum_s32(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_binary_s32_params *params);
void tinyet_minimum_s32(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_binary_s32_params *params);
void tinyet_squared_difference_s32(const int32_t *a, const int32_t *b, int32_t *output,
                                   const tinyet_binary_s32_params *params);
void tinyet_bit_and_s32(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_binary_s32_params *params);
void tinyet_bit_or_s32(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_binary_s32_params *params);
void tinyet_bit_xor_s32(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_binary_s32_params *params);
void tinyet_shift_left_s32(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_binary_s32_params *params);
void tinyet_shift_right_s32(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_binary_s32_params *params);

#ifdef __cplusplus
}
#endif

#endif
