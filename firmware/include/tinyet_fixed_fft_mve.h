/* SPDX-License-Identifier: Apache-2.0 */
/* Assembly of butterflies in fixed point for cores with Helium, four complex numbers at a time: see tinyet_log_bands_mve.h. */
#ifndef TINYET_FIXED_FFT_MVE_H
#define TINYET_FIXED_FFT_MVE_H

#include "tinyet_fixed_fft.h"
#include "tinyet_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
/* (x * w) >> 16 of a word and a halfword is VQDMULH of x and w << 15, and VQDMLAH adds it. The text of a butterfly is there once,
 * for two ways to address its numbers: IN is where a real part is loaded, AT_R where it is stored, AT_I an imaginary part, OUT
 * where that is stored, END the same of the last number. "far": each number has a pointer, which goes from block to block as it is
 * used. "near", where all numbers of a butterfly are beside each other: x points to the last imaginary part. */
#define TINYET_FAR_IN(N) "[%[p" N "]], #16\n"
#define TINYET_FAR_R(N) "[%[p" N "], #-16]\n"
#define TINYET_FAR_I(N) "[%[p" N "]]\n"
#define TINYET_FAR_OUT(N) "[%[p" N "]], #16\n"
#define TINYET_FAR_W(M) "[%[w]], #16\n"
#define TINYET_NEAR_R(N) "[%[x], #32*" N "-%c[last]]\n"
#define TINYET_NEAR_I(N) "[%[x], #32*" N "+16-%c[last]]\n"
#define TINYET_NEAR_END(N) "[%[x]], #%c[last]+16\n"
#define TINYET_NEAR_W(M) "[%[w], #16*" M "]\n"
/* Number N times twiddle M, to R and I, of which I may be V; X, Y, U and V are not kept. */
#define TINYET_TURNED(IN, AT_I, W, N, M, R, I, X, Y, U, V) \
  "vldrh.u16 " U ", " W(M) \
  "vshllb.s16 " V ", " U ", #15\n" \
  "vldrw.u32 " X ", " IN(N) \
  "vqdmulh.s32 " R ", " X ", " V "\n" \
  "vldrw.u32 " Y ", " AT_I(N) \
  "vshllt.s16 " U ", " U ", #15\n" \
  "vqdmulh.s32 " I ", " Y ", " V "\n" \
  "vqdmulh.s32 " Y ", " Y ", " U "\n" \
  "vqdmulh.s32 " X ", " X ", " U "\n" \
  "vsub.i32 " R ", " R ", " Y "\n" \
  "vadd.i32 " I ", " I ", " X "\n"
#define TINYET_TWO_MVE(IN, AT_R, AT_I, OUT, END, W) \
  TINYET_TURNED(IN, AT_I, W, "1", "0", "q4", "q5", "q0", "q1", "q2", "q3") \
  "vldrw.u32 q0, " IN("0") \
  "vldrw.u32 q1, " AT_I("0") \
  "vshr.s32 q0, q0, #1\n" \
  "vsub.i32 q2, q0, q4\n" \
  "vstrw.32 q2, " AT_R("0") \
  "vadd.i32 q0, q0, q4\n" \
  "vstrw.32 q0, " AT_R("1") \
  "vshr.s32 q1, q1, #1\n" \
  "vsub.i32 q2, q1, q5\n" \
  "vstrw.32 q2, " OUT("0") \
  "vadd.i32 q1, q1, q5\n" \
  "vstrw.32 q1, " END("1")
/* One part of the three numbers: total, and the side of the other part, as it is added to the second number. */
#define TINYET_THIRD(LOADED, TOTAL, SIDE, ADD, SUBTRACT, TO_0, TO_1, TO_2) \
  "vldrw.u32 q2, " LOADED \
  "vshr.s32 q2, q2, #1\n" \
  "vsub.i32 q3, q2, " TOTAL "\n" \
  "vstrw.32 q3, " TO_0 \
  "vshr.s32 " TOTAL ", " TOTAL ", #1\n" \
  "vadd.i32 q2, q2, " TOTAL "\n" \
  ADD " q3, q2, " SIDE "\n" \
  "vstrw.32 q3, " TO_1 \
  SUBTRACT " q2, q2, " SIDE "\n" \
  "vstrw.32 q2, " TO_2
#define TINYET_THREE_MVE(IN, AT_R, AT_I, OUT, END, W) \
  TINYET_TURNED(IN, AT_I, W, "1", "0", "q4", "q5", "q0", "q1", "q2", "q3") \
  TINYET_TURNED(IN, AT_I, W, "2", "1", "q6", "q7", "q0", "q1", "q2", "q3") \
  "vadd.i32 q0, q4, q6\n" \
  "vsub.i32 q4, q4, q6\n" \
  "vqdmulh.s32 q4, q4, %[sixty]\n" \
  "vadd.i32 q1, q5, q7\n" \
  "vsub.i32 q5, q5, q7\n" \
  "vqdmulh.s32 q5, q5, %[sixty]\n" \
  TINYET_THIRD(IN("0"), "q0", "q5", "vsub.i32", "vadd.i32", AT_R("0"), AT_R("1"), AT_R("2")) \
  TINYET_THIRD(AT_I("0"), "q1", "q4", "vadd.i32", "vsub.i32", OUT("0"), OUT("1"), END("2"))
/* One part of four numbers: odd, and the side of the other part, as it is added to the second number. C: of the third number. */
#define TINYET_FOURTH(LOADED, ODD, SIDE, C, ADD, SUBTRACT, TO_0, TO_1, TO_2, TO_3) \
  "vldrw.u32 q1, " LOADED \
  "vshr.s32 q1, q1, #1\n" \
  "vsub.i32 q2, q1, " C "\n" \
  "vadd.i32 " C ", q1, " C "\n" \
  "vsub.i32 q1, q2, " ODD "\n" \
  "vstrw.32 q1, " TO_0 \
  "vadd.i32 q2, q2, " ODD "\n" \
  "vstrw.32 q2, " TO_2 \
  ADD " q1, " C ", " SIDE "\n" \
  "vstrw.32 q1, " TO_1 \
  SUBTRACT " " C ", " C ", " SIDE "\n" \
  "vstrw.32 " C ", " TO_3
/* An imaginary part waits where the last one was. */
#define TINYET_FOUR_MVE(IN, AT_R, AT_I, OUT, END, W) \
  TINYET_TURNED(IN, AT_I, W, "1", "0", "q4", "q5", "q0", "q1", "q2", "q3") \
  TINYET_TURNED(IN, AT_I, W, "3", "1", "q6", "q7", "q0", "q1", "q2", "q3") \
  "vadd.i32 q1, q5, q7\n" \
  "vstrw.32 q1, " AT_I("3") \
  "vadd.i32 q0, q4, q6\n" \
  "vsub.i32 q4, q4, q6\n" \
  "vsub.i32 q5, q5, q7\n" \
  TINYET_TURNED(IN, AT_I, W, "2", "2", "q7", "q3", "q1", "q2", "q6", "q3") \
  TINYET_FOURTH(IN("0"), "q0", "q5", "q7", "vsub.i32", "vadd.i32", AT_R("0"), AT_R("1"), AT_R("2"), AT_R("3")) \
  "vldrw.u32 q0, " AT_I("3") \
  TINYET_FOURTH(AT_I("0"), "q0", "q4", "q3", "vadd.i32", "vsub.i32", OUT("0"), OUT("1"), OUT("2"), END("3"))
/* One part of five numbers: q1, outer; q0, inner; q5 and q7, apart and close of the other part. */
#define TINYET_FIFTH(LOADED, ADD, SUBTRACT, TO_0, TO_1, TO_2, TO_3, TO_4) \
  "vldrw.u32 q2, " LOADED \
  "vqdmulh.s32 q4, q1, %[near_cosine]\n" \
  "vshr.s32 q2, q2, #1\n" \
  "vqdmlah.s32 q4, q0, %[far_cosine]\n" \
  "vsub.i32 q3, q2, q1\n" \
  "vqdmulh.s32 q1, q1, %[far_cosine]\n" \
  "vsub.i32 q3, q3, q0\n" \
  "vqdmlah.s32 q1, q0, %[near_cosine]\n" \
  "vstrw.32 q3, " TO_0 \
  "vqdmulh.s32 q0, q5, %[near_sine]\n" \
  "vsub.i32 q4, q2, q4\n" \
  "vqdmlah.s32 q0, q7, %[far_sine]\n" \
  "vsub.i32 q2, q2, q1\n" \
  "vqdmulh.s32 q1, q5, %[far_sine]\n" \
  ADD " q5, q4, q0\n" \
  "vqdmulh.s32 q3, q7, %[near_sine]\n" \
  "vstrw.32 q5, " TO_1 \
  "vsub.i32 q1, q1, q3\n" \
  ADD " q3, q2, q1\n" \
  "vstrw.32 q3, " TO_2 \
  SUBTRACT " q2, q2, q1\n" \
  "vstrw.32 q2, " TO_3 \
  SUBTRACT " q4, q4, q0\n" \
  "vstrw.32 q4, " TO_4
/* What the other part needs waits where imaginary parts were. */
#define TINYET_FIVE_MVE(IN, AT_R, AT_I, OUT, END, W) \
  TINYET_TURNED(IN, AT_I, W, "1", "0", "q4", "q5", "q0", "q1", "q2", "q3") \
  TINYET_TURNED(IN, AT_I, W, "4", "1", "q6", "q7", "q0", "q1", "q2", "q3") \
  "vadd.i32 q0, q4, q6\n" \
  "vadd.i32 q1, q5, q7\n" \
  "vstrw.32 q0, " AT_R("1") \
  "vsub.i32 q4, q4, q6\n" \
  "vstrw.32 q1, " AT_I("1") \
  "vsub.i32 q5, q5, q7\n" \
  "vstrw.32 q4, " AT_I("4") \
  TINYET_TURNED(IN, AT_I, W, "2", "2", "q6", "q7", "q1", "q2", "q4", "q3") \
  TINYET_TURNED(IN, AT_I, W, "3", "3", "q4", "q2", "q0", "q1", "q3", "q2") \
  "vadd.i32 q1, q7, q2\n" \
  "vadd.i32 q0, q6, q4\n" \
  "vstrw.32 q1, " AT_I("2") \
  "vsub.i32 q6, q6, q4\n" \
  "vldrw.u32 q1, " AT_R("1") \
  "vsub.i32 q7, q7, q2\n" \
  "vstrw.32 q6, " AT_I("3") \
  TINYET_FIFTH(IN("0"), "vsub.i32", "vadd.i32", AT_R("0"), AT_R("1"), AT_R("2"), AT_R("3"), AT_R("4")) \
  "vldrw.u32 q1, " AT_I("1") \
  "vldrw.u32 q0, " AT_I("2") \
  "vldrw.u32 q5, " AT_I("4") \
  "vldrw.u32 q7, " AT_I("3") \
  TINYET_FIFTH(AT_I("0"), "vadd.i32", "vsub.i32", OUT("0"), OUT("1"), OUT("2"), OUT("3"), END("4"))
#define TINYET_FAR_MVE(BUTTERFLY) \
  "dls lr, %[fours]\n" \
  "1:\n" \
  BUTTERFLY(TINYET_FAR_IN, TINYET_FAR_R, TINYET_FAR_I, TINYET_FAR_OUT, TINYET_FAR_OUT, TINYET_FAR_W) \
  "le lr, 1b\n"
#define TINYET_NEAR_MVE(BUTTERFLY) \
  "dls lr, %[blocks]\n" \
  "1:\n" \
  BUTTERFLY(TINYET_NEAR_R, TINYET_NEAR_R, TINYET_NEAR_I, TINYET_NEAR_I, TINYET_NEAR_END, TINYET_NEAR_W) \
  "le lr, 1b\n"
#define TINYET_VECTORS "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d10", "d11", "d12", "d13", "d14", "d15", "memory"
#define TINYET_ALL_VECTORS "lr", TINYET_VECTORS
#define TINYET_FIVES [near_cosine] "r"(TINYET_FFT_NEAR_COSINE * 65536), [far_cosine] "r"(TINYET_FFT_FAR_COSINE * 65536), \
  [near_sine] "r"(TINYET_FFT_NEAR_SINE * 65536), [far_sine] "r"(TINYET_FFT_FAR_SINE * 65536)
/* clang-format on */
#endif

#endif
