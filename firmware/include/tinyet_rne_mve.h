/* SPDX-License-Identifier: Apache-2.0 */
/* Sums to outputs that are rounded to even, on cores with Helium and an FPU, whose vectors may be of floats: VCVT, VMUL and VCVTN
 * are the three steps of tinyet_requantize_rne for four sums. They round to nearest, ties to even, whatever FPSCR says; a product
 * that is subnormal becomes zero before it is rounded to zero. */
#ifndef TINYET_RNE_MVE_H
#define TINYET_RNE_MVE_H

#include "tinyet_mve.h"
#include "tinyet_rne.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Instructions of float vectors, as numbers: sources are compiled for Helium of integers alone, so that compilers make none by
 * themselves. TO and FROM: numbers of vector registers; WITH: of a general one, or of another vector. */
#define TINYET_MVE_TO_FLOATS(TO, FROM) ".inst.w 0xffbb0640 + (" #TO " << 13) + (" #FROM " << 1)\n" /* vcvt.f32.s32 */
#define TINYET_MVE_TO_NEAREST(TO, FROM) ".inst.w 0xffbb0140 + (" #TO " << 13) + (" #FROM " << 1)\n" /* vcvtn.s32.f32 */
#define TINYET_MVE_TIMES(TO, WITH) ".inst.w 0xee310e60 + (" #TO " << 17) + (" #TO " << 13) + " #WITH "\n" /* vmul.f32 */
#define TINYET_MVE_PLUS(TO, WITH) ".inst.w 0xee300f40 + (" #TO " << 17) + (" #TO " << 13) + " #WITH "\n" /* vadd.f32 */
#define TINYET_MVE_TIMES_EACH(TO, WITH) \
  ".inst.w 0xff000d50 + (" #TO " << 17) + (" #TO " << 13) + (" #WITH " << 1)\n" /* vmul.f32 of two vectors */

/* factor: the bits of a float. */
TINYET_DSP_INLINE int8_t tinyet_round_rne_mve(int32_t sum, int32_t factor, const tinyet_rounding_mve *r) {
  return (int8_t)tinyet_clamp(tinyet_requantize_rne(sum, factor, 0, r->zero_point), r->low, r->high);
}

/* The same with a float added before it is rounded, whose bits come as the factor's do. */
TINYET_DSP_INLINE int32_t tinyet_requantize_plus_rne(int32_t value, int32_t factor, int32_t added) {
  float scale, plus;
  memcpy(&scale, &factor, sizeof scale);
  memcpy(&plus, &added, sizeof plus);
  return tinyet_round_half_even((float)value * scale + plus);
}

#ifdef __cplusplus
}
#endif

#endif
