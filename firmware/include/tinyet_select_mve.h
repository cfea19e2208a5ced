/* SPDX-License-Identifier: Apache-2.0 */
/* The greatest and the least over axes, and where the greatest is, for cores with Helium, sixteen values of int8 or
 * eight of int16 at a time: see tinyet_mve.h. */
#ifndef TINYET_SELECT_MVE_H
#define TINYET_SELECT_MVE_H

#include "tinyet_argmax.h"
#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of [outer][count][inner] over the middle. */
typedef struct {
  int32_t outer, count, inner;
} tinyet_select_mve_params;

void tinyet_amax_s8_mve(const int8_t *input, int8_t *output, const tinyet_select_mve_params *params);
void tinyet_amin_s8_mve(const int8_t *input, int8_t *output, const tinyet_select_mve_params *params);
void tinyet_amax_s16_mve(const int16_t *input, int16_t *output, const tinyet_select_mve_params *params);
void tinyet_amin_s16_mve(const int16_t *input, int16_t *output, const tinyet_select_mve_params *params);

/* tinyet_argmax_s8 and tinyet_argmax_s16 of rows: inner is 1. */
void tinyet_argmax_s8_mve(const int8_t *input, int32_t *output, const tinyet_argmax_params *params);
void tinyet_argmax_s16_mve(const int16_t *input, int32_t *output, const tinyet_argmax_params *params);

/* The same of columns, eight at a time. count: up to 65536. */
void tinyet_argmax_s8_columns_mve(const int8_t *input, int32_t *output, const tinyet_argmax_params *params);
void tinyet_argmax_s16_columns_mve(const int16_t *input, int32_t *output, const tinyet_argmax_params *params);

#ifdef __cplusplus
}
#endif

#endif
