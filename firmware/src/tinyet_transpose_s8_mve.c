/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_transpose_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
/* So many values, one beside the other in one of the two, `step` bytes apart in the other: q1 has the places of sixteen. */
#define TINYET_MVE_APART(LOAD, STORE, MOVED) \
  __asm__ volatile( \
      "mov.w r4, #0\n" \
      "vidup.u8 q1, r4, #1\n" \
      "vmul.i8 q1, q1, %[step]\n" \
      "lsl.w r4, %[step], #4\n" \
      "dlstp.8 lr, %[count]\n" \
      "1:\n" LOAD STORE \
      "add.w %[" MOVED "], %[" MOVED "], r4\n" \
      "letp lr, 1b\n" \
      : [from] "+l"(from), [to] "+l"(to) \
      : [count] "r"(count), [step] "r"(step) \
      : "r4", "lr", "d0", "d1", "d2", "d3", "memory")
/* clang-format on */
#endif

static void spread(const int8_t *from, int8_t *to, int32_t count, int32_t step) {
#if TINYET_MVE_ASM
  TINYET_MVE_APART("vldrb.8 q0, [%[from]], #16\n", "vstrb.8 q0, [%[to], q1]\n", "to");
#else
  for (int32_t i = 0; i < count; i++) {
    to[i * step] = from[i];
  }
#endif
}

static void collect(const int8_t *from, int8_t *to, int32_t count, int32_t step) {
#if TINYET_MVE_ASM
  TINYET_MVE_APART("vldrb.u8 q0, [%[from], q1]\n", "vstrb.8 q0, [%[to]], #16\n", "from");
#else
  for (int32_t i = 0; i < count; i++) {
    to[i] = from[i * step];
  }
#endif
}

static void row_apart(const int8_t *from, int8_t *to, int32_t columns, int32_t rows) {
#if TINYET_MVE_ASM
  TINYET_MVE_TRANSPOSED_ROW("vldrb.u16 q0, [%[from]], #8\n", "vstrb.16 q0, [%[to], q1]\n", 1);
#else
  spread(from, to, columns, rows);
#endif
}

void tinyet_transpose_s8_mve(const int8_t *input, int8_t *output, const tinyet_transpose_mve_params *p) {
  const int32_t rows = p->rows, columns = p->columns;
  for (int32_t n = 0; n < p->matrices; n++, input += rows * columns, output += rows * columns) {
    if (rows <= 16) {
      for (int32_t y = 0; y < rows; y++) {
        spread(input + y * columns, output + y, columns, rows);
      }
    } else if (columns <= 16) {
      for (int32_t x = 0; x < columns; x++) {
        collect(input + x, output + x * rows, rows, columns);
      }
    } else {
      for (int32_t y = 0; y < rows; y++) {
        row_apart(input + y * columns, output + y, columns, rows);
      }
    }
  }
}
