/* SPDX-License-Identifier: Apache-2.0 */
/* A choice between elements of any type. The file that includes this has defined
 *
 *   KERNEL     the function's name
 *   element    the type of the elements */
#ifndef TINYET_WHERE_BODY_H
#define TINYET_WHERE_BODY_H

#include "tinyet_where.h"

void KERNEL(const int32_t *condition, const void *a, const void *b, void *output, const tinyet_where_params *params) {
  const ptrdiff_t condition_step = (ptrdiff_t)params->condition_step;
  const ptrdiff_t a_step = (ptrdiff_t)params->a_step, b_step = (ptrdiff_t)params->b_step;
  const element *x = (const element *)a, *y = (const element *)b;
  element *out = (element *)output;
  const element *const end = out + params->count;
  while (out != end) {
    *out++ = *condition != 0 ? *x : *y;
    condition += condition_step;
    x += a_step;
    y += b_step;
  }
}

#endif
