/* SPDX-License-Identifier: Apache-2.0 */
/* Addition and subtraction of integers of any type. The file that includes this has defined
 *
 *   KERNEL_ADD, KERNEL_SUB   the functions' names
 *   element                  the type of the elements
 *   kernel_params            their parameters
 *   HEADROOM                 operands are multiplied by 2^HEADROOM
 *   A_ZERO_POINT, B_ZERO_POINT, OUT_ZERO_POINT   expressions of the parameters `p` */
#ifndef TINYET_ADD_BODY_H
#define TINYET_ADD_BODY_H

#include "tinyet_binary.h"

#ifdef __AVR__
/* What rescales two bytes; zero points are 128 more than they were, shifts are to the right. */
typedef struct {
  uint32_t a_multiplier, b_multiplier;
  uint8_t a_zero, b_zero, a_shift, b_shift, b_less;
} rescaling_of_bytes;

/* `rescaled` of a, plus that of b or less it, for operands of bytes: of 2^20 times a magnitude of eight bits high_mul has
 * (magnitude * multiplier + 2^10) / 2^11, with a half going down where the value was negative. */
static __attribute__((noinline, unused)) int32_t sum_of_bytes(const rescaling_of_bytes *of, uint8_t a, uint8_t b) {
#define TINYET_AVR_HALVE "lsr %D[p]\n" "ror %C[p]\n" "ror %B[p]\n" "ror %A[p]\n"
#define TINYET_AVR_MORE(count) \
  "subi %A[p], 0x100-" #count "\n" "sbci %B[p], 0xff\n" "sbci %C[p], 0xff\n" "sbci %D[p], 0xff\n"
#define TINYET_AVR_RESCALED(x, first, zero_point, shift)                                                     \
  "subi " x ", 0x80\n"                                                                                       \
  "clr %[negative]\n"                                                                                        \
  "ldd %[byte], Z+" zero_point "\n"                                                                          \
  "sub " x ", %[byte]\n"                                                                                     \
  "brcc 1f\n"                                                                                                \
  "neg " x "\n"                                                                                              \
  "inc %[negative]\n"                                                                                        \
  "1:\n"                                                                                                     \
  "clr %D[p]\n"                                                                                              \
  "ldd %[byte], Z+" first "\n" "mul " x ", %[byte]\n" "mov %[lowest], r0\n" "mov %A[p], r1\n"               \
  "ldd %[byte], Z+" first "+2\n" "mul " x ", %[byte]\n" "mov %B[p], r0\n" "mov %C[p], r1\n"                 \
  "ldd %[byte], Z+" first "+1\n" "mul " x ", %[byte]\n" "add %A[p], r0\n" "adc %B[p], r1\n" "adc %C[p], %D[p]\n" \
  "ldd %[byte], Z+" first "+3\n" "mul " x ", %[byte]\n" "add %C[p], r0\n" "adc %D[p], r1\n"                 \
  "clr __zero_reg__\n"                                                                                       \
  "sub %[lowest], %[negative]\n"                                                                             \
  "sbci %A[p], 0\n" "sbci %B[p], 0\n" "sbci %C[p], 0\n" "sbci %D[p], 0\n"                                    \
  TINYET_AVR_MORE(4) TINYET_AVR_HALVE TINYET_AVR_HALVE TINYET_AVR_HALVE                                      \
  "ldd %[byte], Z+" shift "\n"                                                                               \
  "tst %[byte]\n"                                                                                            \
  "breq 4f\n"                                                                                                \
  "2:\n"                                                                                                     \
  "dec %[byte]\n"                                                                                            \
  "breq 3f\n" TINYET_AVR_HALVE                                                                               \
  "rjmp 2b\n"                                                                                                \
  "3:\n" TINYET_AVR_MORE(1) TINYET_AVR_HALVE                                                                 \
  "4:\n"
#define TINYET_AVR_SUMMED                                                                          \
  "sbrs %[negative], 0\n"                                                                          \
  "rjmp 5f\n"                                                                                      \
  "sub %A[sum], %A[p]\n" "sbc %B[sum], %B[p]\n" "sbc %C[sum], %C[p]\n" "sbc %D[sum], %D[p]\n"      \
  "rjmp 6f\n"                                                                                      \
  "5:\n"                                                                                           \
  "add %A[sum], %A[p]\n" "adc %B[sum], %B[p]\n" "adc %C[sum], %C[p]\n" "adc %D[sum], %D[p]\n"      \
  "6:\n"
  int32_t sum = 0;
  uint32_t p;
  uint8_t lowest, negative, byte;
  __asm__(
      TINYET_AVR_RESCALED("%[a]", "0", "8", "10") TINYET_AVR_SUMMED
      TINYET_AVR_RESCALED("%[b]", "4", "9", "11")
      "ldd %[byte], Z+12\n"
      "eor %[negative], %[byte]\n" TINYET_AVR_SUMMED
      : [sum] "+&r"(sum), [p] "=&d"(p), [a] "+&d"(a), [b] "+&d"(b), [lowest] "=&r"(lowest), [negative] "=&r"(negative),
        [byte] "=&r"(byte)
      : "z"(of), "m"(*of)
      : "r0");
#undef TINYET_AVR_HALVE
#undef TINYET_AVR_MORE
#undef TINYET_AVR_RESCALED
#undef TINYET_AVR_SUMMED
  return sum;
}
#endif

static inline int32_t rescaled(int32_t value, int32_t multiplier, int32_t shift) {
  return tinyet_requantize(tinyet_shift_left(value, HEADROOM), multiplier, shift);
}

/* Both operators; sign is 1 or -1. The parameters are copied because a store through element * might change *params. */
static inline void add_or_sub(const element *a, const element *b, element *output, const kernel_params *params,
                              int32_t sign) {
  const kernel_params p = *params;
#ifdef __AVR__
  if (sizeof(element) == 1u) { /* no factor is above 1/2, and that of the sum asks for no shift to the left */
    const rescaling_of_bytes of = {(uint32_t)p.a_multiplier,     (uint32_t)p.b_multiplier, (uint8_t)(A_ZERO_POINT + 128),
                                   (uint8_t)(B_ZERO_POINT + 128), (uint8_t)-p.a_shift,      (uint8_t)-p.b_shift,
                                   sign < 0};
    const uint8_t a_step = (uint8_t)p.shape.a_step, b_step = (uint8_t)p.shape.b_step;
    for (uint16_t left = (uint16_t)p.shape.row; left != 0u; left--) {
      const int32_t sum = sum_of_bytes(&of, (uint8_t)*a, (uint8_t)*b);
      const int32_t value = tinyet_round_shift(tinyet_high_mul(sum, p.out_multiplier), -p.out_shift) + OUT_ZERO_POINT;
      *output++ = (element)tinyet_clamp(value, p.clamp_low, p.clamp_high);
      a += a_step;
      b += b_step;
    }
    return;
  }
#endif
  TINYET_BROADCAST_ROW(element, int32_t, a, b, output, &params->shape,
                       (element)tinyet_clamp(
                           tinyet_requantize(rescaled(x - A_ZERO_POINT, p.a_multiplier, p.a_shift) +
                                                 sign * rescaled(y - B_ZERO_POINT, p.b_multiplier, p.b_shift),
                                             p.out_multiplier, p.out_shift) +
                               OUT_ZERO_POINT,
                           p.clamp_low, p.clamp_high));
}

static TINYET_NOINLINE void add_row(const element *a, const element *b, element *output, const kernel_params *params) {
  add_or_sub(a, b, output, params, 1);
}

static TINYET_NOINLINE void sub_row(const element *a, const element *b, element *output, const kernel_params *params) {
  add_or_sub(a, b, output, params, -1);
}

void KERNEL_ADD(const element *a, const element *b, element *output, const kernel_params *params) {
  TINYET_BROADCAST(element, a, b, output, params, add_row);
}

void KERNEL_SUB(const element *a, const element *b, element *output, const kernel_params *params) {
  TINYET_BROADCAST(element, a, b, output, params, sub_row);
}

#endif
