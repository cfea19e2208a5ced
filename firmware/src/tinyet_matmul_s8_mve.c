/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_matmul_mve.h"

void tinyet_matmul_pack_mve(const int8_t *b, int8_t *packed, int32_t columns, int32_t step) {
#if TINYET_MVE_ASM
  __asm__ volatile(
      "mov.w r4, #0\n"
      "vidup.u16 q1, r4, #8\n"
      "vadd.i16 q1, q1, q1\n" /* sixteen bytes from column to column */
      "dlstp.16 lr, %[columns]\n"
      "1:\n"
      "vldrb.u16 q0, [%[b]], #8\n"
      "vstrb.16 q0, [%[packed], q1]\n"
      "add.w %[packed], %[packed], %[step]\n"
      "letp lr, 1b\n"
      : [b] "+l"(b), [packed] "+r"(packed)
      : [columns] "r"(columns), [step] "r"(step)
      : "r4", "lr", "d0", "d1", "d2", "d3", "memory");
#else
  for (int32_t i = 0; i < columns; i++) {
    packed[i / 8 * step + i % 8 * 16] = b[i];
  }
#endif
}

void tinyet_matmul_biases_mve(int32_t *values, int32_t factor, int32_t offset, int32_t count) {
#if TINYET_MVE_ASM
  __asm__ volatile(
      "vdup.32 q1, %[factor]\n"
      "dlstp.32 lr, %[count]\n"
      "1:\n"
      "vldrw.32 q0, [%[values]]\n"
      "vmlas.s32 q0, q1, %[offset]\n"
      "vstrw.32 q0, [%[values]], #16\n"
      "letp lr, 1b\n"
      : [values] "+l"(values)
      : [factor] "r"(factor), [offset] "r"(offset), [count] "r"(count)
      : "lr", "d0", "d1", "d2", "d3", "memory");
#else
  for (int32_t i = 0; i < count; i++) {
    values[i] = values[i] * factor + offset;
  }
#endif
}

int32_t tinyet_matmul_row_sum_mve(const int8_t *row, int32_t count) {
  int32_t sum = 0;
#if TINYET_MVE_ASM
  register int32_t found __asm__("r4") = 0; /* an even register */
  __asm__ volatile(
      "dlstp.8 lr, %[count]\n"
      "1:\n"
      "vldrb.8 q0, [%[row]], #16\n"
      "vaddva.s8 %[found], q0\n"
      "letp lr, 1b\n"
      : [row] "+l"(row), [found] "+r"(found)
      : [count] "r"(count)
      : "lr", "d0", "d1", "memory");
  sum = found;
#else
  for (int32_t i = 0; i < count; i++) {
    sum += row[i];
  }
#endif
  return sum;
}

void tinyet_matmul_outputs_mve(const int32_t *sums, int32_t added, int8_t *output, int32_t count,
                               const tinyet_matmul_rounding_mve *r) {
#if TINYET_MVE_ASM
  __asm__ volatile(
      "ldm.w %[r], {r4, r5, r6, r8, r9}\n"
      "vdup.32 q2, r8\n"
      "vdup.32 q3, r9\n"
      "dlstp.32 lr, %[count]\n"
      "1:\n"
      "vldrw.32 q0, [%[sums]], #16\n"
      "vadd.i32 q0, q0, %[added]\n"
      "vshr.s32 q1, q0, #31\n"
      "vqrdmlah.s32 q1, q0, r4\n"
      "vrshl.s32 q1, r5\n"
      "vadd.i32 q1, q1, r6\n"
      "vmax.s32 q1, q1, q2\n"
      "vmin.s32 q1, q1, q3\n"
      "vstrb.32 q1, [%[to]], #4\n"
      "letp lr, 1b\n"
      : [sums] "+l"(sums), [to] "+l"(output)
      : [added] "r"(added), [count] "r"(count), [r] "r"(r)
      : "r4", "r5", "r6", "r8", "r9", "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "memory");
#else
  for (int32_t i = 0; i < count; i++) {
    const int32_t value = tinyet_requantize(sums[i] + added, r->multiplier, r->shift) + r->zero_point;
    output[i] = (int8_t)tinyet_clamp(value, r->low, r->high);
  }
#endif
}
