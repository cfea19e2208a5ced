/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of a where the condition is not 0, of b elsewhere. */
#ifndef TINYET_WHERE_H
#define TINYET_WHERE_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t count;
  int32_t condition_step, a_step, b_step; /* 1, or 0 where one element serves for all */
} tinyet_where_params;

/* Elements of 1, 2 or 4 bytes, of any type, to which all pointers are aligned. The output may be a or b of its own
 * size. */
void tinyet_where_x8(const int32_t *condition, const void *a, const void *b, void *output,
                     const tinyet_where_params *params);
void tinyet_where_x16(const int32_t *condition, const void *a, const void *b, void *output,
                      const tinyet_where_params *params);
void tinyet_where_x32(const int32_t *condition, const void *a, const void *b, void *output,
                      const tinyet_where_params *params);

#ifdef __cplusplus
}
#endif

#endif
