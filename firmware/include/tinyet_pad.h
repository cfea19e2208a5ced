/* SPDX-License-Identifier: Apache-2.0 */
/* Padding of any dimensions, for elements of one, two or four bytes. */
#ifndef TINYET_PAD_H
#define TINYET_PAD_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TINYET_PAD_DIMS = 6 };
enum { TINYET_PAD_CONSTANT = 0, TINYET_PAD_REFLECT = 1, TINYET_PAD_REPLICATE = 2 };

/* Dimensions outermost first; unused ones have size 1. The last dimension is a row of items that move together. */
typedef struct {
  int32_t in_size[TINYET_PAD_DIMS];
  int32_t out_size[TINYET_PAD_DIMS];
  int32_t before[TINYET_PAD_DIMS]; /* negative: crop */
  int32_t rows;                    /* product of out_size without the last */
  int32_t item_bytes;
  int32_t mode;
  uint32_t fill; /* the constant's bytes, repeated to fill four */
} tinyet_pad_params;

void tinyet_pad(const void *input, void *output, const tinyet_pad_params *params);

#ifdef __cplusplus
}
#endif

#endif
