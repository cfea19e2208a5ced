/* SPDX-License-Identifier: Apache-2.0 */
/* Elements or rows of [outer][size][inner] at places along the middle dimension. */
#ifndef TINYET_GATHER_H
#define TINYET_GATHER_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t outer, size; /* of the input */
  int32_t count;       /* places */
  int32_t row_bytes;   /* of what lies behind the middle dimension */
} tinyet_gather_rows_params;

typedef struct {
  int32_t outer, size, inner;          /* of the input */
  int32_t count;                       /* of the output's middle dimension */
  int32_t outer_step, step, inner_step; /* from place to place along the output's dimensions */
} tinyet_gather_params;

/* A place below 0 counts from the end; one outside is the nearest there is. */
static inline int32_t tinyet_gather_place(int32_t place, int32_t size) {
  return tinyet_clamp(place < 0 ? place + size : place, 0, size - 1);
}

/* Whole rows, of any type. */
void tinyet_gather_rows(const void *input, const int32_t *places, void *output,
                        const tinyet_gather_rows_params *params);

/* Elements of 1, 2 or 4 bytes, of any type, to which all pointers are aligned. */
void tinyet_gather_x8(const void *input, const int32_t *places, void *output, const tinyet_gather_params *params);
void tinyet_gather_x16(const void *input, const int32_t *places, void *output, const tinyet_gather_params *params);
void tinyet_gather_x32(const void *input, const int32_t *places, void *output, const tinyet_gather_params *params);

#ifdef __cplusplus
}
#endif

#endif
