/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of any type at places along a dimension. The file that includes this has defined
 *
 *   KERNEL     the function's name
 *   element    the type of the elements */
#ifndef TINYET_GATHER_BODY_H
#define TINYET_GATHER_BODY_H

#include "tinyet_gather.h"

void KERNEL(const void *input, const int32_t *places, void *output, const tinyet_gather_params *params) {
  const int32_t size = params->size, inner = params->inner;
  const ptrdiff_t step = (ptrdiff_t)params->step, inner_step = (ptrdiff_t)params->inner_step;
  const element *x = (const element *)input;
  element *out = (element *)output;
  for (int32_t o = 0; o < params->outer; o++) {
    const int32_t *row = places;
    for (int32_t k = 0; k < params->count; k++) {
      const int32_t *place = row;
      for (int32_t i = 0; i < inner; i++) {
        *out++ = x[tinyet_gather_place(*place, size) * inner + i];
        place += inner_step;
      }
      row += step;
    }
    x += size * inner;
    places += params->outer_step;
  }
}

#endif
