/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_elementwise_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
#define TINYET_MVE_WALK(BITS, LETTER, BEFORE, OTHER) \
  __asm__ volatile( \
      BEFORE \
      "dlstp." BITS " lr, %[count]\n" \
      "1:\n" \
      "vldr" LETTER "." BITS " q0, [%[from]], #16\n" OTHER \
      "vmax.s" BITS " q0, q0, q1\n" \
      "vstr" LETTER "." BITS " q0, [%[to]], #16\n" \
      "letp lr, 1b\n" \
      : [from] "+l"(from), [with] "+l"(with), [to] "+l"(to) \
      : [value] "r"(value), [count] "r"(walk->row) \
      : "lr", "d0", "d1", "d2", "d3", "memory")
/* clang-format on */
#define TINYET_MVE_EXTREMUM_ROW(TYPE, BITS, LETTER) \
  const TYPE *from = a, *with = b; \
  TYPE *to = output; \
  const int32_t value = *b; \
  if (walk->per_row) { \
    TINYET_MVE_WALK(BITS, LETTER, "vdup." BITS " q1, %[value]\n", ""); \
  } else { \
    TINYET_MVE_WALK(BITS, LETTER, "", "vldr" LETTER "." BITS " q1, [%[with]], #16\n"); \
  }
#else
#define TINYET_MVE_EXTREMUM_ROW(TYPE, BITS, LETTER) \
  for (int32_t i = 0; i < walk->row; i++) { \
    const TYPE other = b[walk->per_row ? 0 : i]; \
    output[i] = a[i] > other ? a[i] : other; \
  }
#endif

void tinyet_maximum_s8_mve(const int8_t *a, const int8_t *b, int8_t *output, const tinyet_rows_mve *walk) {
  for (int32_t n = walk->rows; n > 0; n--) {
    TINYET_MVE_EXTREMUM_ROW(int8_t, "8", "b")
    a += walk->row, b += walk->step, output += walk->row;
  }
}

void tinyet_maximum_s16_mve(const int16_t *a, const int16_t *b, int16_t *output, const tinyet_rows_mve *walk) {
  for (int32_t n = walk->rows; n > 0; n--) {
    TINYET_MVE_EXTREMUM_ROW(int16_t, "16", "h")
    a += walk->row, b += walk->step, output += walk->row;
  }
}
