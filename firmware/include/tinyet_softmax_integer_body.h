/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of softmax and its logarithm over the columns, in integers. The file that includes this has defined
 *
 *   KERNEL                          the function's name
 *   PARAMS                          the type of its parameters
 *   element                         the type of input and output
 *   shape_of(params)                the tinyet_softmax_shape of its parameters
 *   column(input, output, params)   one column: `depth` elements `inner` apart */
#ifndef TINYET_SOFTMAX_INTEGER_BODY_H
#define TINYET_SOFTMAX_INTEGER_BODY_H

#include "tinyet_softmax.h"

void KERNEL(const element *input, element *output, const PARAMS *params) {
  const tinyet_softmax_shape s = shape_of(params);
  for (int32_t n = 0; n < s.outer; n++) {
    for (int32_t i = 0; i < s.inner; i++) {
      column(input + i, output + i, params);
    }
    input += s.depth * s.inner;
    output += s.depth * s.inner;
  }
}

#endif
