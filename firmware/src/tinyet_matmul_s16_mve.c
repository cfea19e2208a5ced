/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_matmul_s16_mve.h"

#if TINYET_MVE_ASM
/* A function of assembly alone. GCC would take registers that the text does not tell it of as not written to. */
#if defined(__clang__)
#define TINYET_MVE_NAKED __attribute__((naked, noinline))
#else
#define TINYET_MVE_NAKED __attribute__((naked, noinline, noipa))
#endif
#endif

/* Two rows of a by pairs of columns. What is one alone is twice there. */
typedef struct {
  const int16_t *rows[2];
  int32_t multiplier, shift;
  int16_t *output, *end;        /* of the first row */
  int32_t column_bytes;         /* from one packed column to the next */
  const int16_t *columns[2];
  int32_t depth, low, high;
  int32_t second_row, second_column; /* bytes from an output to that of the other row, of the other column */
} pairs;

/* A row of b, a value for each column, to its places. */
static void scatter(const int16_t *row, int16_t *packed, int32_t columns, int32_t column_bytes) {
#if TINYET_MVE_ASM
  __asm__ volatile(
      "mov.w r4, #0\n"
      "vidup.u16 q1, r4, #1\n"
      "vmul.i16 q1, q1, %[bytes]\n"
      "dlstp.16 lr, %[columns]\n"
      "1:\n"
      "vldrh.u16 q0, [%[row]], #16\n"
      "vstrh.16 q0, [%[packed], q1]\n"
      "add.w %[packed], %[packed], %[bytes], lsl #3\n"
      "letp lr, 1b\n"
      : [row] "+l"(row), [packed] "+r"(packed)
      : [columns] "r"(columns), [bytes] "r"(column_bytes)
      : "r4", "lr", "d0", "d1", "d2", "d3", "memory");
#else
  for (int32_t n = 0; n < columns; n++) {
    packed[n * (column_bytes / 2)] = row[n];
  }
#endif
}

#if TINYET_MVE_ASM
/* clang-format off */
#define TINYET_MVE_ROUND(LOW, HIGH) \
  "umull " LOW ", lr, " LOW ", r8\n" \
  "mla " HIGH ", " HIGH ", r8, lr\n" \
  "sqrshrl " LOW ", " HIGH ", #64, r9\n"
/* On the stack: four outputs; eight zeros; what `pairs` begins with. r8, r9: rows, then multiplier and shift, then
 * the output and its end; r10, r11: columns; r12: depth. q4, q5: bounds; q6: the four outputs' offsets. */
TINYET_MVE_NAKED static void multiply(TINYET_MVE_UNUSED const pairs *p) {
  __asm__ volatile(
      "push.w {r4-r11, lr}\n"
      "vpush {d8-d13}\n"
      "sub.w sp, sp, #76\n"
      "ldrd r1, r2, [r0, #40]\n"
      "vdup.32 q4, r1\n"
      "vdup.32 q5, r2\n"
      "ldrd r1, r2, [r0, #48]\n"
      "add.w r3, r1, r2\n"
      "mov.w r4, #0\n"
      "strd r4, r2, [sp]\n"
      "strd r1, r3, [sp, #8]\n"
      "vldrw.32 q6, [sp]\n"
      "vmov.i32 q0, #0\n"
      "vstrw.32 q0, [sp, #16]\n"
      "vstrw.32 q0, [sp, #32]\n"
      "ldr.w r12, [r0, #36]\n"
      "ldrd r10, r11, [r0, #28]\n"
      "ldm.w r0, {r2, r3, r4, r5, r6, r7, r8}\n"
      "add.w r1, sp, #48\n"
      "stm.w r1, {r2, r3, r4, r5, r6, r7, r8}\n"
      "1:\n"
      "add.w r8, sp, #16\n"
      "ldm.w r8, {r0, r1, r2, r3, r4, r5, r6, r7}\n"
      "ldrd r8, r9, [sp, #48]\n"
      "dlstp.16 lr, r12\n"
      "2:\n"
      "vldrh.u16 q0, [r8], #16\n"
      "vldrh.u16 q2, [r10], #16\n"
      "vmlaldava.s16 r0, r1, q0, q2\n"
      "vldrh.u16 q3, [r11], #16\n"
      "vmlaldava.s16 r2, r3, q0, q3\n"
      "vldrh.u16 q1, [r9], #16\n"
      "vmlaldava.s16 r4, r5, q1, q2\n"
      "vmlaldava.s16 r6, r7, q1, q3\n"
      "letp lr, 2b\n"
      "ldrd r8, r9, [sp, #56]\n" TINYET_MVE_ROUND("r0", "r1") TINYET_MVE_ROUND("r2", "r3") TINYET_MVE_ROUND("r4", "r5")
      TINYET_MVE_ROUND("r6", "r7")
      "stm.w sp, {r0, r2, r4, r6}\n"
      "ldrd r8, r9, [sp, #64]\n"
      "vldrw.32 q0, [sp]\n"
      "ldr.w r0, [sp, #72]\n"
      "vmax.s32 q0, q0, q4\n"
      "mov.w r10, r11\n"
      "vmin.s32 q0, q0, q5\n"
      "add.w r11, r11, r0\n"
      "vstrh.32 q0, [r8, q6]\n"
      "add.w r8, r8, #4\n"
      "str.w r8, [sp, #64]\n"
      "cmp.w r8, r9\n"
      "bne.w 1b\n"
      "add.w sp, sp, #76\n"
      "vpop {d8-d13}\n"
      "pop.w {r4-r11, pc}\n");
}
/* clang-format on */
#else
static void multiply(const pairs *p) {
  const int16_t *columns[2] = {p->columns[0], p->columns[1]};
  for (int16_t *output = p->output; output != p->end; output += 2) {
    for (int32_t i = 0; i < 2; i++) {
      for (int32_t j = 0; j < 2; j++) {
        int64_t sum = 0;
        for (int32_t k = 0; k < p->depth; k++) {
          sum += (int64_t)p->rows[i][k] * columns[j][k];
        }
        const int32_t value = tinyet_requantize_s64(sum, p->multiplier, p->shift);
        output[(i * p->second_row + j * p->second_column) / 2] = (int16_t)tinyet_clamp(value, p->low, p->high);
      }
    }
    columns[0] = columns[1] + (p->depth + 7) / 8 * 8;
    columns[1] = columns[0] + p->column_bytes / 2;
  }
}
#endif

void tinyet_matmul_s16_mve(const int16_t *a, const int16_t *b, int16_t *output, void *scratch,
                           const tinyet_matmul_s16_params *params) {
  const int32_t depth = params->depth, count = params->columns, wide = (depth + 7) & ~INT32_C(7);
  int16_t *const packed = (int16_t *)scratch;
  pairs p = {{NULL, NULL}, params->multiplier, params->shift, NULL, NULL, 2 * wide, {NULL, NULL}, depth, params->clamp_low,
             params->clamp_high, 0, 0};
  const int32_t even = count & ~1;
  for (int32_t i = 0; i < params->count; i++, output += params->rows * count) {
    const int16_t *const matrix = b + params->batches[2 * i + 1];
    if (i == 0 || params->batches[2 * i + 1] != params->batches[2 * i - 1]) {
      for (int32_t k = 0; k < depth; k++) {
        scatter(matrix + k * count, packed + k, count, 2 * wide);
      }
    }
    for (int32_t m = 0; m < params->rows; m += 2) {
      /* A last row, and a last column, are computed with those before them once more. */
      const int32_t first = m + 1 < params->rows || m == 0 ? m : m - 1;
      const int32_t more = first + 1 < params->rows ? 1 : 0;
      p.rows[0] = a + params->batches[2 * i] + first * depth;
      p.rows[1] = p.rows[0] + more * depth;
      p.second_row = 2 * more * count;
      p.output = output + first * count;
      p.end = p.output + even;
      p.second_column = 2;
      p.columns[0] = packed;
      p.columns[1] = packed + wide;
      if (even != 0) {
        multiply(&p);
      }
      if (even != count) {
        const int32_t before = count > 1 ? 1 : 0;
        p.second_column = 2 * before;
        p.output += even - before;
        p.end = p.output + 2;
        p.columns[0] = packed + (even - before) * wide;
        p.columns[1] = p.columns[0] + before * wide;
        multiply(&p);
      }
    }
  }
}
