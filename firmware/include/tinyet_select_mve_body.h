/* SPDX-License-Identifier: Apache-2.0 */
/* The greatest, or the least, for cores with Helium. The file that includes this has defined
 *
 *   element   the type of the elements
 *   LETTER    its letter in loads and stores
 *   BITS      its bits
 *   SELECT    the instruction: vmax or vmin
 *   BEATS     an expression of `value` and `best` that says whether the one takes the other's place
 *   WORST     what every value takes the place of, or is equal to */
#ifndef TINYET_SELECT_MVE_BODY_H
#define TINYET_SELECT_MVE_BODY_H

#include "tinyet_select_mve.h"

#define TINYET_SELECT_LANES (16 / (int32_t)sizeof(element))

/* Of a row, count > 0. */
static inline int32_t best_of(const element *row, int32_t count) {
  int32_t best = WORST;
#if TINYET_MVE_ASM
  __asm__ volatile(
      "dlstp." BITS " lr, %[count]\n"
      "1:\n"
      "vldr" LETTER "." BITS " q0, [%[row]], #16\n" SELECT "v.s" BITS " %[best], q0\n"
      "letp lr, 1b\n"
      : [row] "+r"(row), [best] "+r"(best)
      : [count] "r"(count)
      : "lr", "d0", "d1", "memory");
#else
  for (int32_t i = 0; i < count; i++) {
    const int32_t value = row[i];
    best = BEATS ? value : best;
  }
#endif
  return best;
}

#endif
