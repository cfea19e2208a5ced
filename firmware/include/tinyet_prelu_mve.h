/* SPDX-License-Identifier: Apache-2.0 */
/* x where x >= 0, else slope * x, for cores with Helium, eight values at a time: see tinyet_elementwise_s16_mve.h. */
#ifndef TINYET_PRELU_MVE_H
#define TINYET_PRELU_MVE_H

#include "tinyet_elementwise_mve.h"
#include "tinyet_elementwise_s16_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of both sides of zero. negative_shift: -1 ... -31; positive_shift: up to 22, of int16 15. */
typedef struct {
  tinyet_rows_mve walk; /* of the slope */
  int32_t zero_point, slope_zero_point, out_zero_point;
  int32_t positive_multiplier, positive_shift;
  int32_t negative_multiplier, negative_shift;
} tinyet_prelu_mve_params;

/* tinyet_prelu_s8, tinyet_prelu_s16. The output may be x. */
void tinyet_prelu_s8_mve(const int8_t *x, const int8_t *slope, int8_t *output, const tinyet_prelu_mve_params *params);
void tinyet_prelu_s16_mve(const int16_t *x, const int16_t *slope, int16_t *output, const tinyet_prelu_mve_params *params);

#if TINYET_MVE_ASM
/* clang-format off */
#define TINYET_MVE_S8_PRELU_STORE(SOME) "vqmovnb.s16 q3, q3\n" TINYET_MVE_S8_STORE##SOME("q3")
#define TINYET_MVE_S16_PRELU_STORE(SOME) TINYET_MVE_S16_STORE##SOME("q3")
/* r4, r5: multiplier and shift of what is not negative, r6, r8: of what is; r9, r10: zero points of x and of the slope, or a
 * row's slope less it; r12: the output's; lr: count. q0: x; q7: slope; q3: the output. */
#define TINYET_MVE_PRELU(LOAD, OTHER, SCALED, STORE) \
  LOAD "vsub.i16 q0, q0, r9\n" OTHER \
  "vmullb.s16 q1, q0, q7\n" \
  "vmullt.s16 q2, q0, q7\n" \
  TINYET_MVE_S16_SCALED("q3", "q1", "r6", "r8") \
  TINYET_MVE_S16_SCALED("q4", "q2", "r6", "r8") \
  "vmovlb.s16 q1, q0\n" \
  "vmovlt.s16 q2, q0\n" \
  SCALED("q5", "q1", "r4", "r5") SCALED("q6", "q2", "r4", "r5") \
  TINYET_MVE_S16_SATURATED("q3", "q4") \
  TINYET_MVE_S16_SATURATED("q5", "q6") \
  "vcmp.s16 lt, q0, zr\n" \
  "vpsel q3, q3, q5\n" \
  "vqadd.s16 q3, q3, r12\n" STORE
#define TINYET_MVE_PRELU_WALK(BEFORE, BODY, AFTER) \
  __asm__ volatile( \
      "ldm.w %[state], {r4, r5, r6, r8, r9, r10, r12, lr}\n" BEFORE BODY AFTER \
      : [from] "+l"(from), [with] "+l"(with), [to] "+l"(to) \
      : [state] "r"(state) \
      : "r4", "r5", "r6", "r8", "r9", "r10", "r12", "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d10", \
        "d11", "d12", "d13", "d14", "d15", "memory")
#define TINYET_MVE_PRELU_ROW(KIND, BEFORE, OTHER, OTHER_SOME, SCALED) \
  if (eights != 0) { \
    state[7] = eights; \
    TINYET_MVE_PRELU_WALK(BEFORE "dls lr, lr\n1:\n", \
                          TINYET_MVE_PRELU(KIND##_LOAD("q0", "from"), OTHER, SCALED, KIND##_PRELU_STORE()), "le lr, 1b\n"); \
  } \
  if (rest != 0) { /* the comparison takes the place of which values are there */ \
    state[7] = rest; \
    TINYET_MVE_PRELU_WALK(BEFORE "vctp.16 lr\n", \
                          TINYET_MVE_PRELU(KIND##_LOAD_SOME("q0", "from"), OTHER_SOME, SCALED, \
                                           "vctp.16 lr\n" KIND##_PRELU_STORE(_SOME)), ""); \
  }
#define TINYET_MVE_PRELU_ROWS(KIND, SCALED) \
  if (p->walk.per_row) { \
    TINYET_MVE_PRELU_ROW(KIND, "vdup.16 q7, r10\n", "", "", SCALED) \
  } else { \
    TINYET_MVE_PRELU_ROW(KIND, "", KIND##_LOAD("q7", "with") "vsub.i16 q7, q7, r10\n", \
                         KIND##_LOAD_SOME("q7", "with") "vsub.i16 q7, q7, r10\n", SCALED) \
  }
#define TINYET_MVE_PRELU_FUNCTION(NAME, TYPE, KIND) \
  void NAME(const TYPE *x, const TYPE *slope, TYPE *output, const tinyet_prelu_mve_params *p) { \
    const int32_t row = p->walk.row, eights = row >> 3, rest = row & 7, zero = p->slope_zero_point; \
    for (int32_t n = p->walk.rows; n > 0; n--) { \
      const TYPE *from = x, *with = slope; \
      TYPE *to = output; \
      int32_t state[] = {p->positive_multiplier, p->positive_shift, p->negative_multiplier, p->negative_shift, \
                         p->zero_point, p->walk.per_row ? *slope - zero : zero, p->out_zero_point, 0}; \
      if (p->positive_shift < 0) { \
        TINYET_MVE_PRELU_ROWS(KIND, TINYET_MVE_S16_SCALED) \
      } else { \
        TINYET_MVE_PRELU_ROWS(KIND, TINYET_MVE_S16_SCALED_LEFT) \
      } \
      x += row, slope += p->walk.step, output += row; \
    } \
  }
/* clang-format on */
#else
#define TINYET_MVE_PRELU_FUNCTION(NAME, TYPE, KIND)                                                                    \
  void NAME(const TYPE *x, const TYPE *slope, TYPE *output, const tinyet_prelu_mve_params *p) {                        \
    const int32_t low = sizeof(TYPE) == 1 ? INT8_MIN : INT16_MIN, high = sizeof(TYPE) == 1 ? INT8_MAX : INT16_MAX;     \
    for (int32_t n = p->walk.rows; n > 0; n--) {                                                                       \
      for (int32_t i = 0; i < p->walk.row; i++) {                                                                      \
        const int32_t value = x[i] - p->zero_point, by = slope[p->walk.per_row ? 0 : i] - p->slope_zero_point;         \
        const int32_t scaled = value < 0                                                                               \
                                   ? tinyet_requantize(value * by, p->negative_multiplier, p->negative_shift)          \
                                   : tinyet_requantize(value, p->positive_multiplier, p->positive_shift);              \
        output[i] = (TYPE)tinyet_clamp(scaled + p->out_zero_point, low, high);                                         \
      }                                                                                                                \
      x += p->walk.row, slope += p->walk.step, output += p->walk.row;                                                  \
    }                                                                                                                  \
  }
#endif

#ifdef __cplusplus
}
#endif

#endif
