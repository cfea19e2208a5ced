/* SPDX-License-Identifier: Apache-2.0 */
/* One strided copy: permute, slice and expand differ only in the strides, which are worked out ahead of time. */
#ifndef TINYET_MOVE_H
#define TINYET_MOVE_H

#include <string.h>

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TINYET_MOVE_LOOPS 6

/* Loops outermost first; unused ones are outermost with size 1. Strides and offset in elements; a stride of 0 repeats. */
typedef struct {
  int32_t in_offset;
  int32_t size[TINYET_MOVE_LOOPS];
  int32_t in_stride[TINYET_MOVE_LOOPS];
  int32_t out_stride[TINYET_MOVE_LOOPS];
} tinyet_move_params;

/* Elements of 1, 2 or 4 bytes, of any type. Both pointers are aligned to an element; the output is not the input. */
void tinyet_move_b8(const void *input, void *output, const tinyet_move_params *params);
void tinyet_move_b16(const void *input, void *output, const tinyet_move_params *params);
void tinyet_move_b32(const void *input, void *output, const tinyet_move_params *params);

/* The body of these three. ELEMENT must be allowed to alias the tensor's own type. */
#define TINYET_MOVE_BODY(ELEMENT, input, output, p)                                               \
  do {                                                                                            \
    const ELEMENT *in_ = (const ELEMENT *)(input) + (p)->in_offset;                               \
    ELEMENT *out_ = (ELEMENT *)(output);                                                          \
    int32_t index_[TINYET_MOVE_LOOPS - 1] = {0};                                                  \
    const int32_t count_ = (p)->size[TINYET_MOVE_LOOPS - 1];                                      \
    const int32_t in_step_ = (p)->in_stride[TINYET_MOVE_LOOPS - 1];                               \
    const int32_t out_step_ = (p)->out_stride[TINYET_MOVE_LOOPS - 1];                             \
    int32_t loop_ = 0;                                                                            \
    while (loop_ >= 0) {                                                                          \
      if (in_step_ == 1 && out_step_ == 1) {                                                      \
        memcpy(out_, in_, sizeof(ELEMENT) * (size_t)count_);                                      \
      } else {                                                                                    \
        const ELEMENT *from_ = in_;                                                               \
        ELEMENT *to_ = out_;                                                                      \
        for (int32_t left_ = count_; left_ > 0; left_--) {                                        \
          *to_ = *from_;                                                                          \
          from_ += in_step_;                                                                      \
          to_ += out_step_;                                                                       \
        }                                                                                         \
      }                                                                                           \
      /* Step the innermost of the outer loops that is not at its end; rewind those inside it. */ \
      for (loop_ = TINYET_MOVE_LOOPS - 2; loop_ >= 0; loop_--) {                                  \
        if (++index_[loop_] < (p)->size[loop_]) {                                                 \
          in_ += (p)->in_stride[loop_];                                                           \
          out_ += (p)->out_stride[loop_];                                                         \
          break;                                                                                  \
        }                                                                                         \
        index_[loop_] = 0;                                                                        \
        in_ -= (p)->in_stride[loop_] * ((p)->size[loop_] - 1);                                    \
        out_ -= (p)->out_stride[loop_] * ((p)->size[loop_] - 1);                                  \
      }                                                                                           \
    }                                                                                             \
  } while (0)

#ifdef __cplusplus
}
#endif

#endif
