/* SPDX-License-Identifier: Apache-2.0 */
/* The same bytes in another place. */
#ifndef TINYET_COPY_H
#define TINYET_COPY_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t bytes;
} tinyet_copy_params;

/* The output may be the input. */
void tinyet_copy(const void *input, void *output, const tinyet_copy_params *params);

#ifdef __cplusplus
}
#endif

#endif
