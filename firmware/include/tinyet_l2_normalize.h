/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of values over their length. The output may lie over the input. */
#ifndef TINYET_L2_NORMALIZE_H
#define TINYET_L2_NORMALIZE_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t rows, depth;
  int32_t in_zero_point;
} tinyet_l2_normalize_s8_params;

/* Output scale 1/128, zero point 0. depth <= 33025. */
void tinyet_l2_normalize_s8(const int8_t *input, int8_t *output, const tinyet_l2_normalize_s8_params *params);

#ifdef __cplusplus
}
#endif

#endif
