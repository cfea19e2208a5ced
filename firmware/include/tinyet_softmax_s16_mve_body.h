/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax of int16 along rows, for cores with Helium. The file that includes this has defined KERNEL, the function's name, PARAMS,
 * the type of its parameters, `softmax_of`, the tinyet_softmax_s16_params of these, and `shares`, a function of a row's exponentials
 * and their number, the reciprocal of the sum, the sum's leading zeros and the parameters, that writes the outputs over the
 * exponentials. */
#ifndef TINYET_SOFTMAX_S16_MVE_BODY_H
#define TINYET_SOFTMAX_S16_MVE_BODY_H

#include "tinyet_lut.h"
#include "tinyet_softmax_mve.h"

static int32_t largest_of(const int16_t *input, int32_t count) {
  int32_t largest = INT16_MIN;
  TINYET_MVE_LARGEST(largest, input, count, "16", "h");
  return largest;
}

#if TINYET_MVE_ASM
/* clang-format off */
/* q7: the largest value; q6, q5: shifts. What is below the largest value is 16 bits without a sign. High products of
 * its negative round as the specification does, and are made positive before the shift that rounds away from zero. A
 * piece of the table rises by less than 2^15 / 256, so that the line in it is a rounded high product, too. */
#define TINYET_MVE_STEPS(Q) \
  "vshl.s32 " Q ", " Q ", q6\n" \
  "vqrdmulh.s32 " Q ", " Q ", %[negative]\n" \
  "vneg.s32 " Q ", " Q "\n" \
  "vrshl.s32 " Q ", " Q ", q5\n"
#define TINYET_MVE_EXPONENTIALS_S16(LOAD, STORE, ADD) \
  LOAD " q0, [%[from]], #16\n" \
  "vsub.i16 q0, q7, q0\n" \
  "vmovlb.u16 q1, q0\n" \
  "vmovlt.u16 q2, q0\n" TINYET_MVE_STEPS("q1") TINYET_MVE_STEPS("q2") \
  "vqmovnb.u32 q0, q1\n" \
  "vqmovnt.u32 q0, q2\n" \
  "vmvn q0, q0\n" \
  "vshr.u16 q1, q0, #7\n" \
  "vldrh.u16 q2, [%[table], q1, uxtw #1]\n" \
  "vldrh.u16 q3, [%[next], q1, uxtw #1]\n" \
  "vshl.i16 q0, q0, #9\n" \
  "vsub.i16 q3, q3, q2\n" \
  "vshr.u16 q0, q0, #1\n" \
  "vqrdmulh.s16 q3, q3, q0\n" \
  "vadd.i16 q2, q2, q3\n" \
  STORE " q2, [%[to]], #16\n" \
  ADD " r4, q2\n"
#define TINYET_MVE_ROW_OF_EXPONENTIALS(BEFORE, BODY, AFTER, COUNT) \
  __asm__ volatile( \
      "ldr.w lr, [%[of]]\n" \
      "vdup.16 q7, lr\n" \
      "ldr.w lr, [%[of], #4]\n" \
      "vdup.32 q6, lr\n" \
      "ldr.w lr, [%[of], #8]\n" \
      "vdup.32 q5, lr\n" BEFORE BODY AFTER \
      : [from] "+r"(input), [to] "+r"(output), [sum] "+r"(sum) \
      : [count] "r"(COUNT), [of] "r"(of), [table] "r"(p->exponentials), [next] "r"(p->exponentials + 1), \
        [negative] "r"(-p->multiplier) \
      : "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d10", "d11", "d12", "d13", "d14", "d15", "memory")
/* clang-format on */
#endif

/* Exponentials, Q0.15, to the output, and their sum, Q16.15. */
static int32_t exponentials_of(const int16_t *input, int16_t *output, int32_t largest, const tinyet_softmax_s16_params *p) {
  const int32_t depth = p->shape.depth;
#if TINYET_MVE_ASM
  register int32_t sum __asm__("r4") = 0; /* an even register */
  const int32_t eights = depth >> 3, rest = depth & 7, left = p->shift > 0 ? p->shift : 0;
  const int32_t of[3] = {largest, left, p->shift - left};
  if (eights != 0) {
    TINYET_MVE_ROW_OF_EXPONENTIALS("dls lr, %[count]\n1:\n",
                                   TINYET_MVE_EXPONENTIALS_S16("vldrh.u16", "vstrh.16", "vaddva.u16"), "le lr, 1b\n", eights);
  }
  if (rest != 0) {
    TINYET_MVE_ROW_OF_EXPONENTIALS(
        "vctp.16 %[count]\n", TINYET_MVE_EXPONENTIALS_S16("vpst\nvldrht.u16", "vpstt\nvstrht.16", "vaddvat.u16"), "", rest);
  }
#else
  int32_t sum = 0;
  for (int32_t i = 0; i < depth; i++) {
    const int32_t scaled = tinyet_requantize(input[i] - largest, p->multiplier, p->shift) + INT16_MAX;
    const int32_t value = tinyet_lut_interpolate_s16(p->exponentials, tinyet_clamp(scaled, INT16_MIN, INT16_MAX));
    output[i] = (int16_t)value;
    sum += value;
  }
#endif
  return sum;
}

void KERNEL(const int16_t *input, int16_t *output, const PARAMS *params) {
  const tinyet_softmax_s16_params *const p = softmax_of(params);
  const int32_t depth = p->shape.depth;
  for (int32_t n = p->shape.outer; n != 0; n--, input += depth, output += depth) {
    const int32_t sum = exponentials_of(input, output, largest_of(input, depth), p);
    const int32_t headroom = tinyet_leading_zeros((uint32_t)sum);
    /* The sum as 1 + x with 16 fraction bits of x, which the table takes less 32768. */
    const int32_t fraction =
        (int32_t)((((uint32_t)sum << (headroom - 1)) + (1u << 13)) >> 14) - (INT32_C(1) << 16) - (INT32_C(1) << 15);
    const int32_t reciprocal = tinyet_lut_interpolate_s16(p->reciprocals, tinyet_clamp(fraction, INT16_MIN, INT16_MAX));
    shares(output, depth, reciprocal, headroom, params);
  }
}

#endif
