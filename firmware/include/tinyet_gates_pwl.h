/* SPDX-License-Identifier: Apache-2.0 */
/* The gates' functions of tinyet_gates_lut.h, piecewise linear (pwl): a table that needs no absolute value, no sign put
 * back and no bounds. 512 straight segments of sigmoid((i - 256) / 24), each a word, each ending where the next one starts.
 * The upper half is where the segment starts, in Q0.16 less 2^15; the lower half twice what it rises by. The reference in
 * Python is tinyet/ops/shared/gates_lut.py. */
#ifndef TINYET_GATES_PWL_H
#define TINYET_GATES_PWL_H

#include "tinyet_dsp.h"
#include "tinyet_gates.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What tanh looks up, of so many integer bits, 0 ... 6, is factor * x + start, rounded down to 2^-8 of a segment. start is half
 * of these where it is they that are rounded to, less one of them. */
static inline int32_t tinyet_pwl_factor(int32_t integer_bits) {
  return integer_bits < 3 ? 384 >> (3 - integer_bits) : 384 << (integer_bits - 3);
}
static inline int32_t tinyet_pwl_start(int32_t integer_bits) { return integer_bits < 3 ? 64 - 128 : -128; }

#if TINYET_GATE_MVE
/* tinyet_pwl_segment, and what makes halves round away from zero there, of four at a time. */
static inline int32x4_t tinyet_pwl_segments_mve(const int32_t *middle, int32x4_t t) {
  const int32x4_t piece = vldrwq_gather_shifted_offset_s32(middle, vreinterpretq_u32_s32(vshrq_n_s32(t, 15)));
  const int32x4_t rise = vmulq_s32(vandq_s32(t, vdupq_n_s32(0x7fff)), vmovlbq_s16(vreinterpretq_s16_s32(piece)));
  return vaddq_s32(vaddq_s32(piece, rise), vshrq_n_s32(t, 31));
}

static __attribute__((noinline, unused)) void tinyet_pwl_sigmoids(const int32_t *pieces, int16_t *values,
                                                                  int32_t count) {
  const int16x8_t factor = vdupq_n_s16(192);
  for (; count > 0; count -= 8) {
    const mve_pred16_t there = vctp16q((uint32_t)count);
    const int16x8_t x = vldrhq_z_s16(values, there);
    const int32x4_t even = tinyet_pwl_segments_mve(pieces + 256, vsubq_n_s32(vmullbq_int_s16(x, factor), 1));
    const int32x4_t odd = tinyet_pwl_segments_mve(pieces + 256, vsubq_n_s32(vmulltq_int_s16(x, factor), 1));
    const uint16x8_t both = vreinterpretq_u16_s32(vsriq_n_s32(odd, even, 16));
    vstrhq_p_u16((uint16_t *)values, vhaddq_n_u16(veorq_u16(both, vdupq_n_u16(0x8000)), 1), there);
    values += 8;
  }
}

static inline int32x4_t tinyet_bounded_mve(int32x4_t product, int32_t start) {
  const int32x4_t t = vorrq_s32(vaddq_n_s32(product, start), vdupq_n_s32(127));
  return vmaxq_s32(vminq_s32(t, vdupq_n_s32((INT32_C(1) << 23) - 1)), vdupq_n_s32(-(INT32_C(1) << 23)));
}

static __attribute__((noinline, unused)) void tinyet_pwl_tanhs(const int32_t *pieces, int16_t *values, int32_t count,
                                                               int32_t integer_bits) {
  const int16x8_t factor = vdupq_n_s16((int16_t)tinyet_pwl_factor(integer_bits));
  const int32_t start = tinyet_pwl_start(integer_bits);
  for (; count > 0; count -= 8) {
    const mve_pred16_t there = vctp16q((uint32_t)count);
    const int16x8_t x = vldrhq_z_s16(values, there);
    const int32x4_t even = tinyet_pwl_segments_mve(pieces + 256, tinyet_bounded_mve(vmullbq_int_s16(x, factor), start));
    const int32x4_t odd = tinyet_pwl_segments_mve(pieces + 256, tinyet_bounded_mve(vmulltq_int_s16(x, factor), start));
    const int32x4_t both = vsriq_n_s32(vaddq_n_s32(odd, 0x8000), vaddq_n_s32(even, 0x8000), 16);
    vstrhq_p_s16(values, vreinterpretq_s16_s32(both), there);
    values += 8;
  }
}
#else
/* In 2^-32 less 2^31, of t + 1 in 2^-15 of a segment from the middle of the table on. The rise is multiplied by one part less
 * than there are, and once more in the word that this is added to. */
TINYET_DSP_INLINE int32_t tinyet_pwl_segment(const int32_t *middle, int32_t t) {
  const int32_t piece = middle[t >> 15];
  return tinyet_smlabb_dsp(t & 0x7fff, piece, piece);
}

/* Of two values, Q3.12 to Q0.15. one: 1 in both halves. */
TINYET_DSP_INLINE uint32_t tinyet_pwl_sigmoid(const int32_t *middle, uint32_t x, uint32_t one) {
  const int32_t a = tinyet_smlabb_dsp((int32_t)x, 192, -1), b = tinyet_smlatb_dsp((int32_t)x, 192, -1);
  const uint32_t low = (uint32_t)(tinyet_pwl_segment(middle, a) + (a >> 31));
  const uint32_t high = (uint32_t)(tinyet_pwl_segment(middle, b) + (b >> 31));
  return tinyet_halved_dsp(tinyet_high_int16x2_dsp(low, high) ^ 0x80008000u, one);
}

/* Where the table ends, functions do not change any more. */
TINYET_DSP_INLINE int32_t tinyet_pwl_bound(int32_t t) {
#if TINYET_DSP_ASM
  int32_t result;
  __asm__("ssat %0, #24, %1" : "=r"(result) : "r"(t));
  return result;
#else
  return tinyet_clamp(t, -(INT32_C(1) << 23), (INT32_C(1) << 23) - 1);
#endif
}

/* Of two values to Q0.15. */
TINYET_DSP_INLINE uint32_t tinyet_pwl_tanh(const int32_t *middle, uint32_t x, int32_t factor, int32_t start) {
  const int32_t a = tinyet_pwl_bound(tinyet_smlabb_dsp((int32_t)x, factor, start) | 127);
  const int32_t b = tinyet_pwl_bound(tinyet_smlatb_dsp((int32_t)x, factor, start) | 127);
  const uint32_t low = (uint32_t)(tinyet_pwl_segment(middle, a) + (0x8000 + (a >> 31)));
  const uint32_t high = (uint32_t)(tinyet_pwl_segment(middle, b) + (0x8000 + (b >> 31)));
  return tinyet_high_int16x2_dsp(low, high);
}

/* Of each value; count: fours. */
static __attribute__((noinline, unused)) void tinyet_pwl_sigmoids(const int32_t *pieces, int16_t *values,
                                                                  int32_t count) {
  const int16_t *const end = values + count;
  const int32_t *middle = pieces + 256;
  uint32_t one = 0x00010001u;
  __asm__("" : "+r"(middle), "+r"(one)); /* in registers, where GCC would not keep them */
  for (; values != end; values += 4) {
    uint32_t first, second;
    memcpy(&first, values, sizeof first);
    memcpy(&second, values + 2, sizeof second);
    first = tinyet_pwl_sigmoid(middle, first, one);
    second = tinyet_pwl_sigmoid(middle, second, one);
    memcpy(values, &first, sizeof first);
    memcpy(values + 2, &second, sizeof second);
  }
}

/* Of each value, of so many integer bits, 0 ... 6; count: fours. */
static __attribute__((noinline, unused)) void tinyet_pwl_tanhs(const int32_t *pieces, int16_t *values, int32_t count,
                                                               int32_t integer_bits) {
  const int32_t factor = tinyet_pwl_factor(integer_bits), start = tinyet_pwl_start(integer_bits);
  const int16_t *const end = values + count;
  const int32_t *middle = pieces + 256;
  __asm__("" : "+r"(middle));
  for (; values != end; values += 4) {
    uint32_t first, second;
    memcpy(&first, values, sizeof first);
    memcpy(&second, values + 2, sizeof second);
    first = tinyet_pwl_tanh(middle, first, factor, start);
    second = tinyet_pwl_tanh(middle, second, factor, start);
    memcpy(values, &first, sizeof first);
    memcpy(values + 2, &second, sizeof second);
  }
}
#endif

#ifdef __cplusplus
}
#endif

#endif
