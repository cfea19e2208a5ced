/* SPDX-License-Identifier: Apache-2.0 */
/* A strided copy of elements of one size. The file that includes this has defined
 *
 *   KERNEL    the function's name
 *   element   an integer of that size, which may alias the tensor's own type */
#ifndef TINYET_STRIDED_COPY_BODY_H
#define TINYET_STRIDED_COPY_BODY_H

#include <string.h>

#include "tinyet_strided_copy.h"

void KERNEL(const void *input, void *output, const tinyet_strided_copy_params *params) {
  const element *in = (const element *)input + params->in_offset;
  element *out = (element *)output;
  int32_t index[TINYET_STRIDED_COPY_LOOPS - 1] = {0};
  const int32_t count = params->size[TINYET_STRIDED_COPY_LOOPS - 1];
  const int32_t in_step = params->in_stride[TINYET_STRIDED_COPY_LOOPS - 1];
  const int32_t out_step = params->out_stride[TINYET_STRIDED_COPY_LOOPS - 1];
  int32_t loop = 0;
  while (loop >= 0) {
    if (in_step == 1 && out_step == 1) {
      memcpy(out, in, sizeof(element) * (size_t)count);
    } else {
      const element *from = in;
      element *to = out;
      int32_t left = count;
      if (in_step == 1) { /* planes that become channels: neighbours have one address */
        for (; left >= 4; left -= 4) {
          to[0] = from[0];
          to[out_step] = from[1];
          to[2 * out_step] = from[2];
          to[3 * out_step] = from[3];
          from += 4;
          to += 4 * out_step;
        }
      }
      for (; left > 0; left--) {
        *to = *from;
        from += in_step;
        to += out_step;
      }
    }
    /* Step the innermost of the outer loops that is not at its end; rewind those inside it. */
    for (loop = TINYET_STRIDED_COPY_LOOPS - 2; loop >= 0; loop--) {
      if (++index[loop] < params->size[loop]) {
        in += params->in_stride[loop];
        out += params->out_stride[loop];
        break;
      }
      index[loop] = 0;
      in -= params->in_stride[loop] * (params->size[loop] - 1);
      out -= params->out_stride[loop] * (params->size[loop] - 1);
    }
  }
}

#endif
