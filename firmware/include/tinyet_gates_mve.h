/* SPDX-License-Identifier: Apache-2.0 */
/* Gates of recurrent layers for cores with Helium (MVE): the functions of tinyet_gates.h of eight values at a time. VQRDMULH is
 * tinyet_gate_mul. Included by tinyet_gates.h. */
#ifndef TINYET_GATES_MVE_H
#define TINYET_GATES_MVE_H

#include <arm_mve.h>

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A function of assembly alone. GCC would take registers that the text does not tell it of as not written to. */
#if defined(__clang__)
#define TINYET_GATE_NAKED __attribute__((naked, noinline, unused))
#else
#define TINYET_GATE_NAKED __attribute__((naked, noinline, noipa, unused))
#endif

/* clang-format off */
/* exp(n / 2^15) and 2 / (1 + it), as tinyet_gates.h has them, of n = -|x|, eight values at a time. r0: the values, q0: x. A factor is
 * for where a bit of n is 0, so q1 has the bits of ~n. LEFT shifts what remains of a multiple of 1/4 to the highest bits. */
#define TINYET_MVE_FACTOR(BITS, R) \
  "vpt.s16 lt, " BITS ", zr\n" \
  "vqrdmulht.s16 q3, q3, " R "\n"
#define TINYET_MVE_NEWTON \
  "vqrdmulh.s16 q5, q4, q3\n" \
  "vsub.i16 q5, q7, q5\n" \
  "vqrdmulh.s16 q5, q3, q5\n" \
  "vmla.s16 q3, q5, r12\n"
#define TINYET_MVE_OF_EXP(LEFT, FACTORS) \
  "vldrh.u16 q0, [r0]\n" \
  "vneg.s16 q1, q0\n" \
  "vmin.s16 q2, q0, q1\n" \
  "vmvn q1, q2\n" LEFT \
  "vadd.i16 q2, q2, r8\n" \
  "vshr.s16 q2, q2, #3\n" \
  "vqrdmulh.s16 q3, q2, q2\n" \
  "vqrdmulh.s16 q4, q3, q3\n" \
  "vqrdmulh.s16 q5, q3, q2\n" \
  "vrshr.s16 q4, q4, #2\n" \
  "vadd.i16 q4, q4, q5\n" \
  "vqrdmlah.s16 q3, q4, r6\n" \
  "vrshr.s16 q3, q3, #1\n" \
  "vadd.i16 q3, q3, q2\n" \
  "vqrdmlash.s16 q3, q6, r7\n" FACTORS \
  "vhadd.u16 q4, q3, r8\n" \
  "vqrdmulh.s16 q3, q4, r9\n" \
  "vadd.i16 q3, q3, r10\n" TINYET_MVE_NEWTON TINYET_MVE_NEWTON TINYET_MVE_NEWTON
#define TINYET_MVE_GATE_BEGIN \
  "push {r4-r11, lr}\n" \
  "vpush {d8-d15}\n" \
  "movw r3, #25520\n" /* exp(-1/4) */ \
  "movw r4, #19875\n" \
  "movw r5, #12055\n" \
  "movw r11, #4435\n" \
  "movw r6, #10923\n" \
  "movw r7, #28918\n" /* exp(-1/8) */ \
  "vdup.16 q6, r7\n" \
  "movw r8, #32768\n" \
  "movw r9, #50116\n" /* -15420 */ \
  "movw r10, #23130\n" \
  "mov.w r12, #4\n" \
  "vmov.i16 q7, #8192\n"

/* Of each value. Q3.12 to Q0.15. */
#define TINYET_MVE_BIT(LEFT, R) "vshl.i16 q5, q1, #" LEFT "\n" TINYET_MVE_FACTOR("q5", R)
TINYET_GATE_NAKED static void tinyet_gate_sigmoid(__attribute__((unused)) int16_t *values,
                                                                         __attribute__((unused)) int32_t count) {
  __asm__ volatile(TINYET_MVE_GATE_BEGIN
      "movw r2, #600\n"
      "dlstp.16 lr, r1\n"
      "mov.w r1, #16384\n" /* the bit that is worth 4 is the highest: of x = 0 alone ~n is negative */
      "1:\n" TINYET_MVE_OF_EXP("vshl.i16 q2, q2, #6\n", TINYET_MVE_BIT("5", "r3") TINYET_MVE_BIT("4", "r4")
        TINYET_MVE_BIT("3", "r5") TINYET_MVE_BIT("2", "r11") "vpt.s16 ge, q1, r1\nvqrdmulht.s16 q3, q3, r2\n")
      "vqadd.s16 q3, q3, q3\n"
      "vptt.s16 lt, q0, zr\n"
      "vmvnt q3, q3\n"
      "vbict.i16 q3, #32768\n" /* 32767 - y */
      "vpt.i16 eq, q0, zr\n"
      "vmovt.i16 q3, #16384\n"
      "vstrh.16 q3, [r0], #16\n"
      "letp lr, 1b\n"
      "vpop {d8-d15}\n"
      "pop.w {r4-r11, pc}\n");
}

/* Of each value, of so many integer bits, 0 ... 6, to Q0.15. Here the bits of ~n come to the sign one after another, the one that is
 * worth 1/4 first, and zeros behind the last one. On the stack: the shift of what remains, and 16, to reverse all bits; the shift
 * behind that, and a factor; another, and 16 as x has it, above which exp is nothing. */
#define TINYET_MVE_NEXT_BIT(R) "vshl.i16 q1, q1, #1\n" TINYET_MVE_FACTOR("q1", R)
TINYET_GATE_NAKED static void tinyet_gate_tanh(__attribute__((unused)) int16_t *values,
                                                                      __attribute__((unused)) int32_t count,
                                                                      __attribute__((unused)) int32_t integer_bits) {
  __asm__ volatile(TINYET_MVE_GATE_BEGIN
      "sub.w sp, sp, #24\n"
      "dlstp.16 lr, r1\n"
      "add.w r1, r2, #4\n"
      "str.w r1, [sp]\n"
      "mov.w r1, #16\n"
      "str.w r1, [sp, #4]\n"
      "rsb.w r1, r2, #12\n"
      "str.w r1, [sp, #8]\n"
      "mov.w r1, #600\n"
      "str.w r1, [sp, #12]\n"
      "mov.w r1, #11\n"
      "str.w r1, [sp, #16]\n"
      "mov.w r1, #32768\n"
      "subs.w r2, r2, #3\n"
      "it gt\n"
      "lsrgt.w r1, r1, r2\n"
      "str.w r1, [sp, #20]\n"
      "1:\n" TINYET_MVE_OF_EXP("ldrd r1, r2, [sp]\nvshl.s16 q2, r1\nvbrsr.16 q1, q1, r2\n",
        "ldrd r1, r2, [sp, #8]\n"
        "vshl.s16 q1, r1\n" TINYET_MVE_FACTOR("q1", "r3") TINYET_MVE_NEXT_BIT("r4") TINYET_MVE_NEXT_BIT("r5")
        TINYET_MVE_NEXT_BIT("r11") TINYET_MVE_NEXT_BIT("r2")
        "ldrd r1, r2, [sp, #16]\n" TINYET_MVE_NEXT_BIT("r1")
        "vabs.s16 q1, q0\n"
        "vpt.u16 hi, q1, r2\n"
        "vmovt.i16 q3, #0\n")
      "vsub.i16 q3, q3, q7\n"
      "vqshl.s16 q3, q3, #2\n"
      "vpt.s16 lt, q0, zr\n"
      "vnegt.s16 q3, q3\n"
      "vpt.i16 eq, q0, zr\n"
      "vmovt.i16 q3, #0\n"
      "vstrh.16 q3, [r0], #16\n"
      "letp lr, 1b\n"
      "add.w sp, sp, #24\n"
      "vpop {d8-d15}\n"
      "pop.w {r4-r11, pc}\n");
}
/* clang-format on */

/* Both of an even number of units, as an odd one would leave half of a word unwritten. */
/* What an LSTM's cells are behind a step, eight at a time: gates + rows times the cell, plus gates times gates + 2 rows. They go to
 * the first gate, too. */
static inline void tinyet_lstm_cells_mve(int16_t *gates, int32_t rows, int16_t *cells, int32_t units, int32_t cell_bits) {
  const int16_t *forget = gates + rows, *fresh = forget + rows;
  const int32_t shift = -15 - cell_bits;
  /* clang-format off */
  __asm__ volatile(
      "dlstp.16 lr, %[units]\n"
      "1:\n"
      "vldrh.u16 q0, [%[forget]], #16\n"
      "vldrh.u16 q1, [%[cells]]\n"
      "vmullb.s16 q2, q0, q1\n"
      "vmullt.s16 q3, q0, q1\n"
      "vldrh.u16 q0, [%[gates]]\n"
      "vldrh.u16 q1, [%[fresh]], #16\n"
      "vshr.s32 q4, q2, #31\n"
      "vadd.i32 q2, q2, q4\n"
      "vshr.s32 q4, q3, #31\n"
      "vadd.i32 q3, q3, q4\n"
      "vrshr.s32 q2, q2, #15\n"
      "vrshr.s32 q3, q3, #15\n"
      "vmullb.s16 q4, q0, q1\n"
      "vmullt.s16 q0, q0, q1\n"
      "vshr.s32 q1, q4, #31\n"
      "vadd.i32 q4, q4, q1\n"
      "vshr.s32 q1, q0, #31\n"
      "vadd.i32 q0, q0, q1\n"
      "vrshl.s32 q4, %[shift]\n"
      "vrshl.s32 q0, %[shift]\n"
      "vadd.i32 q2, q2, q4\n"
      "vadd.i32 q3, q3, q0\n"
      "vqmovnb.s32 q2, q2\n"
      "vqmovnt.s32 q2, q3\n"
      "vstrh.16 q2, [%[cells]], #16\n"
      "vstrh.16 q2, [%[gates]], #16\n"
      "letp lr, 1b\n"
      : [gates] "+r"(gates), [forget] "+r"(forget), [fresh] "+r"(fresh), [cells] "+r"(cells)
      : [units] "r"(units), [shift] "r"(shift)
      : "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "memory");
  /* clang-format on */
}

/* What the output gate lets through of the cells' tanh, of a form that is not negative. */
static inline void tinyet_lstm_hidden_mve(const int16_t *out, const int16_t *cells, int8_t *hidden, int32_t units,
                                          int32_t multiplier, int32_t form, int32_t zero_point) {
  const int32_t shift = -1 - form;
  /* clang-format off */
  __asm__ volatile(
      "dlstp.16 lr, %[units]\n"
      "1:\n"
      "vldrh.u16 q0, [%[out]], #16\n"
      "vldrh.u16 q1, [%[cells]], #16\n"
      "vmullb.s16 q2, q0, q1\n"
      "vmullt.s16 q3, q0, q1\n"
      "vshr.s32 q0, q2, #31\n"
      "vshr.s32 q1, q3, #31\n"
      "vqrdmlah.s32 q0, q2, %[multiplier]\n"
      "vqrdmlah.s32 q1, q3, %[multiplier]\n"
      "vrshl.s32 q0, %[shift]\n"
      "vrshl.s32 q1, %[shift]\n"
      "vqmovnb.s32 q0, q0\n"
      "vqmovnt.s32 q0, q1\n"
      "vqadd.s16 q0, q0, %[zero]\n"
      "vqmovnb.s16 q0, q0\n"
      "vstrb.16 q0, [%[hidden]], #8\n"
      "letp lr, 1b\n"
      : [out] "+r"(out), [cells] "+r"(cells), [hidden] "+l"(hidden)
      : [units] "r"(units), [multiplier] "r"(multiplier), [shift] "r"(shift), [zero] "r"(zero_point)
      : "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "memory");
  /* clang-format on */
}

/* Zeros; a multiple of eight. */
static inline void tinyet_gate_clear(int16_t *values, int32_t count) {
  for (int16_t *const end = values + count; values != end; values += 8) {
    vstrhq_s16(values, vdupq_n_s16(0));
  }
}

/* a * b / 2^bits of the even or the odd lanes: ties away from zero. */
static inline int32x4_t tinyet_rounded_mve(int32x4_t product, int32_t bits) {
  return vrshlq_n_s32(vaddq_s32(product, vshrq_n_s32(product, 31)), -bits);
}

/* tinyet_shortened. */
static inline int32x4_t tinyet_shortened_mve(int32x4_t product, int32_t bits) {
  return vrshlq_n_s32(vaddq_s32(product, vorrq_s32(vshrq_n_s32(product, 31), vdupq_n_s32(1))), -bits);
}

/* tinyet_requantize_form of forms that are not negative. */
static inline int32x4_t tinyet_requantize_mve(int32x4_t sum, int32_t multiplier, int32_t form, int32_t zero_point) {
  return vaddq_n_s32(tinyet_rounded_mve(vqrdmulhq_n_s32(sum, multiplier), form + 1), zero_point);
}

/* Even and odd lanes, saturated. */
static inline int16x8_t tinyet_joined_mve(int32x4_t even, int32x4_t odd) {
  return vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), even), odd);
}

/* To int8, saturated: as many as are there. */
static inline void tinyet_store_bytes_mve(int8_t *to, int32x4_t even, int32x4_t odd, mve_pred16_t there) {
  const int16x8_t both = tinyet_joined_mve(even, odd);
  vstrbq_p_s16(to, vmaxq_s16(vminq_s16(both, vdupq_n_s16(127)), vdupq_n_s16(-128)), there);
}

#ifdef __cplusplus
}
#endif

#endif
