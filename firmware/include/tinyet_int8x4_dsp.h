/* SPDX-License-Identifier: Apache-2.0 */
/* int8x4: four int8 in a word on cores with DSP instructions, for the kernels that work element by element: see tinyet_dsp.h. */
#ifndef TINYET_INT8X4_DSP_H
#define TINYET_INT8X4_DSP_H

#include "tinyet_dsp.h"
#include "tinyet_elementwise_dsp.h"

/* A loop that needs all the registers there are. */
#define TINYET_DSP_ROW __attribute__((noinline))

#if TINYET_DSP_ASM
#define TINYET_DSP_PRODUCT(name, text)                                              \
  TINYET_DSP_INLINE int32_t tinyet_##name##_dsp(int32_t a, uint32_t b, int32_t c) { \
    int32_t result;                                                                 \
    __asm__(text " %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(c));        \
    return result;                                                                  \
  }
TINYET_DSP_PRODUCT(smlawb, "smlawb")
TINYET_DSP_PRODUCT(smlawt, "smlawt")
#undef TINYET_DSP_PRODUCT
#define TINYET_DSP_HALVES(name, text)                                     \
  TINYET_DSP_INLINE int32_t tinyet_##name##_dsp(uint32_t a, uint32_t b) { \
    int32_t result;                                                       \
    __asm__(text " %0, %1, %2" : "=r"(result) : "r"(a), "r"(b));          \
    return result;                                                        \
  }
TINYET_DSP_HALVES(smulbb, "smulbb")
TINYET_DSP_HALVES(smultt, "smultt")
#undef TINYET_DSP_HALVES
TINYET_DSP_INLINE uint32_t tinyet_saturate_int16x2_dsp(uint32_t a) {
  uint32_t result;
  __asm__("usat16 %0, #8, %1" : "=r"(result) : "r"(a));
  return result;
}
/* One statement: the compiler does not know of the flags between the two. */
TINYET_DSP_INLINE uint32_t tinyet_lesser_bytes_dsp(uint32_t a, uint32_t b) {
  uint32_t result;
  __asm__("ssub8 %0, %1, %2\n\tsel %0, %2, %1" : "=&r"(result) : "r"(a), "r"(b));
  return result;
}
#else
/* c + the upper 32 bits of the 48 of a by the lower half of b, modulo 2^32 */
TINYET_DSP_INLINE int32_t tinyet_smlawb_dsp(int32_t a, uint32_t b, int32_t c) {
  return (int32_t)((uint32_t)c + (uint32_t)(((int64_t)a * tinyet_half_dsp(b, 0)) >> 16));
}
/* By the upper half. */
TINYET_DSP_INLINE int32_t tinyet_smlawt_dsp(int32_t a, uint32_t b, int32_t c) {
  return (int32_t)((uint32_t)c + (uint32_t)(((int64_t)a * tinyet_half_dsp(b, 1)) >> 16));
}
TINYET_DSP_INLINE int32_t tinyet_smulbb_dsp(uint32_t a, uint32_t b) {
  return tinyet_half_dsp(a, 0) * tinyet_half_dsp(b, 0);
}
TINYET_DSP_INLINE int32_t tinyet_smultt_dsp(uint32_t a, uint32_t b) {
  return tinyet_half_dsp(a, 1) * tinyet_half_dsp(b, 1);
}
/* Both int16 of a pair within 0 ... 255. */
TINYET_DSP_INLINE uint32_t tinyet_saturate_int16x2_dsp(uint32_t a) {
  return tinyet_low_int16x2_dsp((uint32_t)tinyet_clamp(tinyet_half_dsp(a, 0), 0, 255),
                                (uint32_t)tinyet_clamp(tinyet_half_dsp(a, 1), 0, 255));
}
/* The lesser of each two of four int8. */
TINYET_DSP_INLINE uint32_t tinyet_lesser_bytes_dsp(uint32_t a, uint32_t b) { return ~tinyet_greater_bytes_dsp(~a, ~b); }
#endif

/* A mask for tinyet_upper_even_dsp, in a register of its own: with a literal, the shift would be an instruction. */
TINYET_DSP_INLINE uint32_t tinyet_upper_mask_dsp(void) {
  uint32_t mask = 0xff00ff00u;
  TINYET_DSP_UNKNOWN(mask);
  return mask;
}

/* Bytes 0 and 2 of four int8 as the upper bytes of a pair, with zeros below. */
TINYET_DSP_INLINE uint32_t tinyet_upper_even_dsp(uint32_t a, uint32_t mask) { return (a << 8) & mask; }
/* Bytes 1 and 3. */
TINYET_DSP_INLINE uint32_t tinyet_upper_odd_dsp(uint32_t a, uint32_t mask) { return a & mask; }

/* Two Q16, as a pair of integers within 0 ... 255. */
TINYET_DSP_INLINE uint32_t tinyet_bytes_of_dsp(int32_t first, int32_t second) {
  return tinyet_saturate_int16x2_dsp(tinyet_high_int16x2_dsp((uint32_t)first, (uint32_t)second));
}

/* Two pairs within 0 ... 255 as four int8, which are 128 less: bytes 0 and 2, 1 and 3. */
TINYET_DSP_INLINE uint32_t tinyet_join_bytes_dsp(uint32_t even, uint32_t odd) {
  return (even | odd << 8) ^ 0x80808080u;
}

/* A pair of the same half twice. */
TINYET_DSP_INLINE uint32_t tinyet_dup_int16x2_dsp(int32_t half) {
  return tinyet_low_int16x2_dsp((uint32_t)half, (uint32_t)half);
}

/* A byte four times. */
TINYET_DSP_INLINE uint32_t tinyet_dup_int8x4_dsp(int32_t byte) { return ((uint32_t)byte & 0xffu) * 0x01010101u; }

#endif
