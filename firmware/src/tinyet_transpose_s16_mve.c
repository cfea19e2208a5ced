/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_transpose_mve.h"

static void row_apart(const int16_t *from, int16_t *to, int32_t columns, int32_t rows) {
#if TINYET_MVE_ASM
  TINYET_MVE_TRANSPOSED_ROW("vldrh.u16 q0, [%[from]], #16\n", "vstrh.16 q0, [%[to], q1, uxtw #1]\n", 2);
#else
  for (int32_t i = 0; i < columns; i++) {
    to[i * rows] = from[i];
  }
#endif
}

void tinyet_transpose_s16_mve(const int16_t *input, int16_t *output, const tinyet_transpose_mve_params *p) {
  const int32_t rows = p->rows, columns = p->columns;
  for (int32_t n = 0; n < p->matrices; n++, input += rows * columns, output += rows * columns) {
    for (int32_t y = 0; y < rows; y++) {
      row_apart(input + y * columns, output + y, columns, rows);
    }
  }
}
