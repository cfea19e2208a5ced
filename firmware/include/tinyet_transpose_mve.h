/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices of bytes or halves transposed by cores with Helium: of bytes rows or columns, whichever are sixteen or fewer, one after
 * another, sixteen values at a time; else row by row, eight at a time. */
#ifndef TINYET_TRANSPOSE_MVE_H
#define TINYET_TRANSPOSE_MVE_H

#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of the input. rows: up to 9362, so that the places of eight values fit 16 bits. */
typedef struct {
  int32_t matrices, rows, columns;
} tinyet_transpose_mve_params;

/* The output is not the input. */
void tinyet_transpose_s8_mve(const int8_t *input, int8_t *output, const tinyet_transpose_mve_params *params);
void tinyet_transpose_s16_mve(const int16_t *input, int16_t *output, const tinyet_transpose_mve_params *params);

#if TINYET_MVE_ASM
/* A row to where its values are `step` values apart. */
#define TINYET_MVE_TRANSPOSED_ROW(LOAD, STORE, AT) \
  __asm__ volatile( \
      "mov.w r4, #0\n" \
      "vidup.u16 q1, r4, #1\n" \
      "vmul.i16 q1, q1, %[step]\n" \
      "dlstp.16 lr, %[count]\n" \
      "1:\n" LOAD STORE \
      "add.w %[to], %[to], %[eight]\n" \
      "letp lr, 1b\n" \
      : [from] "+l"(from), [to] "+r"(to) \
      : [count] "r"(columns), [step] "r"(rows), [eight] "r"(8 * rows * (AT)) \
      : "r4", "lr", "d0", "d1", "d2", "d3", "memory")
#endif

#ifdef __cplusplus
}
#endif

#endif
