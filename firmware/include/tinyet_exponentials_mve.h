/* SPDX-License-Identifier: Apache-2.0 */
/* The exponentials of a row of int8 less its largest value, for cores with Helium: see tinyet_mve.h. */
#ifndef TINYET_EXPONENTIALS_MVE_H
#define TINYET_EXPONENTIALS_MVE_H

#include "tinyet_fixed_point.h"
#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a row's exponentials are found. */
typedef struct {
  const int32_t *exponentials;
  int32_t largest, near; /* differences from `near` on have no exponential */
} tinyet_row_mve;

static inline int32_t tinyet_largest_mve(const int8_t *input, int32_t count) {
  int32_t largest = INT8_MIN;
  TINYET_MVE_LARGEST(largest, input, count, "8", "b");
  return largest;
}

#if TINYET_MVE_ASM
/* Four exponentials, zeros where there is none, to q1. q3 has the largest value. */
#define TINYET_MVE_EXPONENTIALS            \
  "vldrb.s32 q0, [%[from]], #4\n"          \
  "vsub.i32 q0, q3, q0\n"                  \
  "vpt.s32 lt, q0, %[near]\n"              \
  "vldrwt.u32 q1, [%[table], q0, uxtw #2]\n"
#else
static inline int32_t tinyet_exponential_mve(int32_t value, const tinyet_row_mve *r) {
  const int32_t below = r->largest - value;
  return below < r->near ? r->exponentials[below] : 0;
}
#endif

/* Q12.19 */
static inline int32_t tinyet_sum_of_exponentials_mve(const int8_t *input, int32_t count, const tinyet_row_mve *r) {
  int32_t sum = 0;
#if TINYET_MVE_ASM
  __asm__ volatile(
      "vdup.32 q3, %[largest]\n"
      "mov.w r4, #0\n" /* VADDVA takes an even register */
      "dlstp.32 lr, %[count]\n"
      "1:\n" TINYET_MVE_EXPONENTIALS
      "vrshr.s32 q1, q1, #12\n"
      "vaddva.s32 r4, q1\n"
      "letp lr, 1b\n"
      "mov.w %[sum], r4\n"
      : [from] "+l"(input), [sum] "=r"(sum)
      : [count] "r"(count), [largest] "r"(r->largest), [near] "r"(r->near), [table] "r"(r->exponentials)
      : "r4", "lr", "cc", "d0", "d1", "d2", "d3", "d6", "d7", "memory");
#else
  for (int32_t i = 0; i < count; i++) {
    sum += tinyet_as_addend(tinyet_exponential_mve(input[i], r));
  }
#endif
  return sum;
}

#ifdef __cplusplus
}
#endif

#endif
