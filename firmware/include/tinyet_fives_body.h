/* SPDX-License-Identifier: Apache-2.0 */
/* Five inputs in three words, 2^19 d + a, 2^19 e + b and 2^12 e + 2^6 d + c: three products with a weight add to five sums. */
#ifndef TINYET_FIVES_BODY_H
#define TINYET_FIVES_BODY_H

#include "tinyet_one_product.h"

enum {
  STEP = 3, /* words of five inputs */
  FIELD = 19,
  FOURTH = 6, /* by how much the fourth input is shifted in the third word */
  FIFTH = 12, /* and the fifth */
  BEFORE = 12, /* what sums are shifted by before they are rounded; one less where taps are in two parts */
  SHIFT = 12
};

typedef uint32_t __attribute__((may_alias)) word;

/* What the words begin with: 2^18 for each sum, of which what leaves a word is no longer there. */
#define FIRST_SUM (UINT32_C(1) << (FIELD - 1))
#define THIRD_SUM (FIRST_SUM + (FIRST_SUM << FOURTH) + (FIRST_SUM << FIFTH))

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2 && defined(__thumb__)
#define IN_THUMB
#endif

#endif
