/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of softmax and its logarithm over the columns, in float. The file that includes this has defined
 *
 *   KERNEL                                  the function's name
 *   column(input, output, depth, stride)    one column: `depth` elements `stride` apart */
#ifndef TINYET_SOFTMAX_BODY_H
#define TINYET_SOFTMAX_BODY_H

#include "tinyet_softmax.h"

void KERNEL(const float *input, float *output, const tinyet_softmax_shape *shape) {
  for (int32_t n = 0; n < shape->outer; n++) {
    for (int32_t i = 0; i < shape->inner; i++) {
      column(input + i, output + i, shape->depth, shape->inner);
    }
    input += shape->depth * shape->inner;
    output += shape->depth * shape->inner;
  }
}

#endif
