/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of two int32, element by element. */
#ifndef TINYET_PAIRWISE_H
#define TINYET_PAIRWISE_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t count;
  int32_t a_step, b_step; /* 1, or 0 where one element serves for all */
} tinyet_pairwise_params;

/* What leaves 32 bits is wrapped; division by 0 gives 0. div rounds towards zero, the rest of floor_mod has the divisor's
 * sign; shift_right keeps the sign, and a shift by less than 0 or more than 31 bits moves all of them out. The output is neither operand. */
void tinyet_whole_add(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_pairwise_params *params);
void tinyet_whole_sub(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_pairwise_params *params);
void tinyet_whole_mul(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_pairwise_params *params);
void tinyet_whole_div(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_pairwise_params *params);
void tinyet_whole_floor_div(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_pairwise_params *params);
void tinyet_whole_floor_mod(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_pairwise_params *params);
void tinyet_whole_maximum(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_pairwise_params *params);
void tinyet_whole_minimum(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_pairwise_params *params);
void tinyet_whole_squared_difference(const int32_t *a, const int32_t *b, int32_t *output,
                                     const tinyet_pairwise_params *params);
void tinyet_whole_bit_and(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_pairwise_params *params);
void tinyet_whole_bit_or(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_pairwise_params *params);
void tinyet_whole_bit_xor(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_pairwise_params *params);
void tinyet_whole_shift_left(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_pairwise_params *params);
void tinyet_whole_shift_right(const int32_t *a, const int32_t *b, int32_t *output, const tinyet_pairwise_params *params);

#ifdef __cplusplus
}
#endif

#endif
