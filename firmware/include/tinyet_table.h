/* SPDX-License-Identifier: Apache-2.0 */
/* Any function of one int8: sigmoid, a requantization, an addition of a constant ... */
#ifndef TINYET_TABLE_H
#define TINYET_TABLE_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const int8_t *table; /* [256], for the inputs 0 ... 127, -128 ... -1 */
  int32_t count;
} tinyet_table_s8_params;

/* The output may be the input. */
void tinyet_table_s8(const int8_t *input, int8_t *output, const tinyet_table_s8_params *params);

#ifdef __cplusplus
}
#endif

#endif
