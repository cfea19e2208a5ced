/* SPDX-License-Identifier: Apache-2.0 */
/* Two operands that broadcast against each other as in numpy. Dimensions which neither operand repeats differently are
 * merged ahead of time, so that most models walk one or two loops; tinyet/ops/shared/broadcast.py fills the struct. */
#ifndef TINYET_BROADCAST_H
#define TINYET_BROADCAST_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TINYET_BROADCAST_LOOPS 5
#define TINYET_NOINLINE __attribute__((noinline))

typedef struct {
  int32_t row;                          /* elements of the innermost dimension */
  int32_t a_step, b_step;               /* in it: 1, or 0 where one element serves the whole row */
  int32_t loops;                        /* dimensions outside it */
  int32_t size[TINYET_BROADCAST_LOOPS]; /* their sizes, innermost first */
  /* From the start of the row just done to the start of the next one, when dimension k is the one that steps. */
  int32_t a_jump[TINYET_BROADCAST_LOOPS], b_jump[TINYET_BROADCAST_LOOPS];
} tinyet_broadcast;

/* Steps the outer dimensions; gives the one that moved on, or -1 after the last row. */
static inline int32_t tinyet_broadcast_next(const tinyet_broadcast *shape, int32_t *index) {
  for (int32_t k = 0; k < shape->loops; k++) {
    if (++index[k] < shape->size[k]) {
      return k;
    }
    index[k] = 0;
  }
  return -1;
}

/* Calls ROW(a, b, output, params) for each row. ROW is a function of its own, never inlined, because its loop needs all the
 * registers there are; TINYET_BROADCAST_ROW is its usual body. */
#define TINYET_BROADCAST(ELEMENT, a, b, output, params, ROW)        \
  do {                                                              \
    const tinyet_broadcast *const shape_ = &(params)->shape;        \
    const ELEMENT *a_ = (a), *b_ = (b);                             \
    ELEMENT *out_ = (output);                                       \
    int32_t index_[TINYET_BROADCAST_LOOPS] = {0};                   \
    for (;;) {                                                      \
      ROW(a_, b_, out_, (params));                                  \
      const int32_t moved_ = tinyet_broadcast_next(shape_, index_); \
      if (moved_ < 0) {                                             \
        break;                                                      \
      }                                                             \
      a_ += shape_->a_jump[moved_];                                 \
      b_ += shape_->b_jump[moved_];                                 \
      out_ += shape_->row;                                          \
    }                                                               \
  } while (0)

/* output[i] = RESULT for each element of a row, where RESULT is an expression, of type ELEMENT, of the operands' elements x and y, read as
 * VALUE. Element i is read before it is written and not again, so the output may be an operand of its own size. What
 * RESULT reads besides x and y should be local variables: a store through int8_t * may change anything else. */
#define TINYET_BROADCAST_ROW(ELEMENT, VALUE, a, b, output, shape, RESULT)                       \
  do {                                                                                          \
    const ELEMENT *a_ = (a), *b_ = (b);                                                         \
    ELEMENT *out_ = (output);                                                                   \
    const ELEMENT *const end_ = out_ + (shape)->row;                                            \
    const ptrdiff_t a_step_ = (ptrdiff_t)(shape)->a_step, b_step_ = (ptrdiff_t)(shape)->b_step; \
    if (a_step_ == 1 && b_step_ == 1) {                                                         \
      while (out_ != end_) {                                                                    \
        const VALUE x = *a_++, y = *b_++;                                                       \
        *out_++ = (RESULT);                                                                     \
      }                                                                                         \
    } else {                                                                                    \
      while (out_ != end_) {                                                                    \
        const VALUE x = *a_, y = *b_;                                                           \
        *out_++ = (RESULT);                                                                     \
        a_ += a_step_;                                                                          \
        b_ += b_step_;                                                                          \
      }                                                                                         \
    }                                                                                           \
  } while (0)

#ifdef __cplusplus
}
#endif

#endif
