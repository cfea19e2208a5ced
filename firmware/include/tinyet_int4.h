/* SPDX-License-Identifier: Apache-2.0 */
/* int4 weights (nibbles), two to a byte. A word of eight is two words of four int8 weights, as the int8 kernels read them,
 * one in the low halves of its bytes and the next one in the high halves (tinyet/ops/shared/nibbles.py packs them).
 *
 * Cores with the DSP extension do not shift a weight down to where its sign is extended: they mask it, which leaves 16
 * times the weight in a byte. So sums there are 16 times what they are elsewhere, and tinyet_nibble_sum divides them, without
 * a remainder. Python refuses layers whose sums that would take beyond 32 bits. */
#ifndef TINYET_INT4_H
#define TINYET_INT4_H

#include "tinyet_int16x2.h"

#ifdef __cplusplus
extern "C" {
#endif

#if TINYET_HAS_SIMD32

/* Four bytes, each 16 times a weight. */
static inline uint32_t tinyet_low_nibbles(uint32_t word) { return (word << 4) & 0xf0f0f0f0u; }
static inline uint32_t tinyet_high_nibbles(uint32_t word) { return word & 0xf0f0f0f0u; }

static inline int32_t tinyet_low_nibble(int8_t byte) { return (int8_t)((uint32_t)byte << 4); }
static inline int32_t tinyet_high_nibble(int8_t byte) { return byte & ~15; }
static inline int32_t tinyet_nibble_sum(int32_t sum) { return sum >> 4; }

#elif defined(__AVR__)

/* Of 16 bits, which products with inputs fit. */
static inline int16_t tinyet_low_nibble(int8_t byte) { return (int16_t)((int8_t)(uint8_t)((uint8_t)byte << 4) >> 4); }
static inline int16_t tinyet_high_nibble(int8_t byte) { return (int16_t)(byte >> 4); }
static inline int32_t tinyet_nibble_sum(int32_t sum) { return sum; }

#else

static inline int32_t tinyet_low_nibble(int8_t byte) { return (int32_t)((uint32_t)byte << 28) >> 28; }
static inline int32_t tinyet_high_nibble(int8_t byte) { return byte >> 4; }
static inline int32_t tinyet_nibble_sum(int32_t sum) { return sum; }

#endif

#ifdef __cplusplus
}
#endif

#endif
