/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_lut_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
/* Four values. q7 has the lower bits of a size, q6 the number of the last entry that another one follows, q5 the line's value
 * beyond it. Below zero a function is its value at the size, mirrored about `centre`: less that, the complement. */
#define TINYET_MVE_FOURS(BITS, BEHIND, SHIFT) \
  __asm__ volatile( \
      "vdup.32 q7, %[lower]\n" \
      "vmov.i32 q6, #254\n" \
      "vdup.32 q5, %[limit]\n" \
      "dlstp.32 lr, %[count]\n" \
      "1:\n" \
      "vldrh.s32 q0, [%[from]], #8\n" \
      "vmul.i32 q0, q0, %[factor]\n" \
      "vrshl.s32 q0, %[left]\n" \
      "vabs.s32 q1, q0\n" \
      "vshr.u32 q2, q1, #" BITS "\n" \
      "vand q1, q1, q7\n" \
      "vcmp.u32 hi, q2, q6\n" \
      "vmin.u32 q2, q2, q6\n" \
      "vldrh.u32 q3, [%[table], q2, uxtw #1]\n" \
      "vldrh.u32 q4, [%[next], q2, uxtw #1]\n" \
      "vsub.i32 q4, q4, q3\n" \
      "vmul.i32 q4, q4, q1\n" \
      "vshl.i32 q3, q3, #" BITS "\n" \
      "vadd.i32 q3, q3, q4\n" \
      "vpsel q3, q5, q3\n" \
      "vsub.i32 q3, q3, %[centre]\n" \
      "vshr.s32 q0, q0, #31\n" \
      "veor q3, q3, q0\n" BEHIND \
      "vrshr.s32 q3, q3, #" SHIFT "\n" \
      "vstrh.32 q3, [%[to]], #8\n" \
      "letp lr, 1b\n" \
      : [from] "+l"(input), [to] "+l"(output) \
      : [count] "r"(p->count), [factor] "r"(p->factor), [left] "r"(-p->shift), [table] "r"(p->table), \
        [next] "r"(p->table + 1), [centre] "r"(f->centre), [lower] "r"((1 << f->bits) - 1), [limit] "r"(f->limit) \
      : "lr", "cc", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d10", "d11", "d12", "d13", "d14", "d15", \
        "memory")
/* clang-format on */
#endif

/* bits: fraction bits that a line has and the table has not; limit: a line's value beyond the table; shift: to the output.
 * added: to what is mirrored. */
typedef struct {
  int32_t bits, limit, centre, added, shift;
} form;

static const form sigmoid = {9, INT32_C(0x7fff) << 10, INT32_C(1) << 24, INT32_C(1) << 24, 10};
static const form tanh_ = {8, INT32_C(0xffff) << 8, INT32_C(1) << 23, 0, 8};

#if !TINYET_MVE_ASM
static int32_t value_of(int32_t x, const form *f, const tinyet_sigmoid_s16_params *p) {
  const int32_t argument = (x * p->factor + (int32_t)((UINT32_C(1) << (uint32_t)p->shift) >> 1)) >> p->shift;
  const int32_t size = argument < 0 ? -argument : argument, index = size >> f->bits;
  int32_t line = f->limit;
  if (index < 255) {
    const int32_t here = p->table[index], following = p->table[index + 1];
    line = here * (1 << f->bits) + (size & ((1 << f->bits) - 1)) * (following - here);
  }
  const int32_t mirrored = argument < 0 ? f->centre - line - 1 : line - f->centre;
  return (mirrored + f->added + (1 << (f->shift - 1))) >> f->shift;
}

static void values_of(const int16_t *input, int16_t *output, const form *f, const tinyet_sigmoid_s16_params *p) {
  for (int32_t i = 0; i < p->count; i++) {
    output[i] = (int16_t)value_of(input[i], f, p);
  }
}
#endif

void tinyet_sigmoid_s16_mve(const int16_t *input, int16_t *output, const tinyet_sigmoid_s16_params *p) {
  const form *const f = &sigmoid;
#if TINYET_MVE_ASM
  if (p->count != 0) {
    TINYET_MVE_FOURS("9", "vadd.i32 q3, q3, %[centre]\n", "10");
  }
#else
  values_of(input, output, f, p);
#endif
}

/* 2 sigmoid(2 x) - 1 */
void tinyet_tanh_s16_mve(const int16_t *input, int16_t *output, const tinyet_sigmoid_s16_params *p) {
  const form *const f = &tanh_;
#if TINYET_MVE_ASM
  if (p->count != 0) {
    TINYET_MVE_FOURS("8", "", "8");
  }
#else
  values_of(input, output, f, p);
#endif
}
