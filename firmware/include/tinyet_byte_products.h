/* SPDX-License-Identifier: Apache-2.0 */
/* Layers whose products are of two bytes, for cores that multiply no more at once: AVR. Inputs, and weights but those of
 * depthwise layers, are 128 more than they were: then products have no sign that would have to be extended. Outputs are made of
 * sums by two products of 32 bits; what makes this exact is proved for each layer when code is generated
 * (tinyet/ops/shared/byte_products.py). */
#ifndef TINYET_BYTE_PRODUCTS_H
#define TINYET_BYTE_PRODUCTS_H

#include "tinyet_packed_words.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TINYET_BYTES_PIXELS = 4,
  TINYET_BYTES_RUN = 256, /* products that a sum of 24 bits holds */
  TINYET_BYTES_RIGHT = 8 /* words.right of all these layers: a shift by a byte is none */
};

/* words.stream, for each channel: the sum before the first product, less where its first output step begins; then what makes
 * outputs of sums, as in tinyet_packed_words.h, but that the upper factor has 24 bits, with the eight of the lower one above them,
 * in whose place are eight bits more, often none. words.padding: plus 128. weights: channel by channel, plus 128; of depthwise
 * layers as they are. */
typedef struct {
  tinyet_conv2d_shape shape;
  tinyet_packed_words words;
  const TINYET_ROM uint8_t *weights;
} tinyet_conv2d_s8_bytes_4x1_params;

typedef struct {
  tinyet_conv2d_shape shape;
  tinyet_packed_words words;
  const TINYET_ROM int8_t *weights;
} tinyet_depthwise_s8_bytes_params;

typedef struct {
  int32_t rows, depth;
  tinyet_packed_words words;
  const TINYET_ROM uint8_t *weights;
} tinyet_linear_s8_bytes_params;

/* A function whose registers nobody else needs: inlined, too many at once would be kept in memory. */
#ifdef __AVR__
#define TINYET_BYTES_APART __attribute__((noinline))
#else
#define TINYET_BYTES_APART
#endif

#ifdef __AVR__
__extension__ typedef __uint24 tinyet_bytes_sum; /* of up to 256 products */
__extension__ typedef __int24 tinyet_window_sum;
#define TINYET_BYTES_SUM(x) ((tinyet_bytes_sum)(x))
#define TINYET_BYTES_TAP(x, sum) \
  "ld %[" x "], X+\n"            \
  "mul %[" x "], %[w]\n"         \
  "add %A[" sum "], r0\n"        \
  "adc %B[" sum "], r1\n"        \
  "adc %C[" sum "], %[zero]\n"
#else
typedef uint32_t tinyet_bytes_sum;
#define TINYET_BYTES_SUM(x) (x)
#endif

#ifdef __AVR__
/* Carry: whether the sum a, b, c, d is less than what Z points at. */
#define TINYET_BYTES_COMPARE(a, b, c, d, byte)   \
  TINYET_LPM byte ", Z+\n" "cp " a ", " byte "\n" \
  TINYET_LPM byte ", Z+\n" "cpc " b ", " byte "\n" \
  TINYET_LPM byte ", Z+\n" "cpc " c ", " byte "\n" \
  TINYET_LPM byte ", Z+\n" "cpc " d ", " byte "\n"
/* Adds what Z points at to p, q, r, s, or subtracts it. */
#define TINYET_BYTES_CHANGE(first, next, p, q, r, s, byte) \
  TINYET_LPM byte ", Z+\n" first " " p ", " byte "\n"      \
  TINYET_LPM byte ", Z+\n" next " " q ", " byte "\n"       \
  TINYET_LPM byte ", Z+\n" next " " r ", " byte "\n"       \
  TINYET_LPM byte ", Z+\n" next " " s ", " byte "\n"
#define TINYET_BYTES_CLEAR(p, q, r) "clr " p "\n" "clr " q "\n" "movw " r ", " p "\n"
/* s: what tinyet_bytes_output makes of the sum a, b, c, d by the numbers at Z, whose first are there where T is set (two-sided).
 * Changes a, b, c, d, p, q, r (of which two are a pair, as r and s are, above 15), byte, r0 and r1. Sums within the limit have 24
 * bits: d is zero then. Of the products with the lower bytes of the factor the lowest bits are dropped, as the shifts do it.
 *
 * First the two upper bytes, r and s, of the products that reach into them, of what is added and of what is less: all else is less
 * than 9 of r, and changes s only if r is 0xf8 or more. */
#define TINYET_BYTES_OUTPUT(a, b, c, d, p, q, r, s, byte, low, high)                                     \
  "tst " d "\n"                                                                                          \
  "brmi 24f\n"                                                                                           \
  "brtc 21f\n"                                                                                           \
  TINYET_BYTES_CLEAR(p, q, r)                                                                            \
  TINYET_BYTES_COMPARE(a, b, c, d, byte)                                                                 \
  "brcs 20f\n"                                                                                           \
  "adiw r30, 4\n"                                                                                        \
  "rjmp 21f\n"                                                                                           \
  "20:\n" TINYET_BYTES_CHANGE("sub", "sbc", p, q, r, s, byte)                                            \
  "21:\n" TINYET_BYTES_COMPARE(a, b, c, d, byte)                                                         \
  "brcs 22f\n"                                                                                           \
  high "\n"                                                                                              \
  "rjmp 23f\n"                                                                                           \
  "24:\n"                                                                                                \
  low "\n"                                                                                               \
  "rjmp 23f\n"                                                                                           \
  "22:\n"                                                                                                \
  "clr " d "\n"                                                                                          \
  TINYET_LPM p ", Z+\n"                                                                                  \
  TINYET_LPM q ", Z+\n"                                                                                  \
  TINYET_LPM byte ", Z+\n"                                                                               \
  "mul " q ", " b "\n"                                                                                   \
  "brts 29f\n"                                                                                           \
  "movw " r ", r0\n"                                                                                     \
  "30:\n"                                                                                                \
  "mul " q ", " a "\n" "add " r ", r1\n" "adc " s ", " d "\n"                                            \
  "mul " p ", " b "\n" "add " r ", r1\n" "adc " s ", " d "\n"                                            \
  "tst " c "\n"                                                                                          \
  "breq 25f\n"                                                                                           \
  "mul " q ", " c "\n" "add " s ", r0\n"                                                                 \
  "mul " p ", " c "\n" "add " r ", r0\n" "adc " s ", r1\n"                                               \
  TINYET_LPM p ", Z\n"                                                                                   \
  "mul " p ", " c "\n" "add " r ", r1\n" "adc " s ", " d "\n"                                            \
  "25:\n"                                                                                                \
  "tst " byte "\n"                                                                                       \
  "breq 26f\n"                                                                                           \
  "mul " byte ", " b "\n" "add " s ", r0\n"                                                              \
  "mul " byte ", " a "\n" "add " r ", r0\n" "adc " s ", r1\n"                                            \
  "26:\n"                                                                                                \
  "adiw r30, 7\n"                                                                                        \
  TINYET_LPM p ", Z+\n" "add " r ", " p "\n"                                                             \
  TINYET_LPM p ", Z\n" "adc " s ", " p "\n"                                                              \
  "cpi " r ", 0xf8\n"                                                                                    \
  "brsh 27f\n"                                                                                           \
  "rjmp 23f\n"                                                                                           \
  "29:\n"                                                                                                \
  "add " r ", r0\n"                                                                                      \
  "adc " s ", r1\n"                                                                                      \
  "rjmp 30b\n"                                                                                           \
  "27:\n"                                                                                                \
  "sbiw r30, 11\n"                                                                                       \
  TINYET_BYTES_CLEAR(p, q, r)                                                                            \
  "brtc 28f\n"                                                                                           \
  "sbiw r30, 12\n"                                                                                       \
  TINYET_BYTES_COMPARE(a, b, c, d, byte)                                                                 \
  "brcs 29f\n"                                                                                           \
  "adiw r30, 8\n"                                                                                        \
  "rjmp 28f\n"                                                                                           \
  "29:\n" TINYET_BYTES_CHANGE("sub", "sbc", p, q, r, s, byte)                                            \
  "adiw r30, 4\n"                                                                                        \
  "28:\n"                                                                                                \
  TINYET_LPM byte ", Z+\n"                                                                               \
  "mul " byte ", " a "\n" "add " p ", r0\n" "adc " q ", r1\n" "adc " r ", " d "\n" "adc " s ", " d "\n"  \
  "mul " byte ", " b "\n" "add " q ", r0\n" "adc " r ", r1\n" "adc " s ", " d "\n"                       \
  "mul " byte ", " c "\n" "add " r ", r0\n" "adc " s ", r1\n"                                            \
  TINYET_LPM byte ", Z+\n"                                                                               \
  "mul " byte ", " a "\n" "add " q ", r0\n" "adc " r ", r1\n" "adc " s ", " d "\n"                       \
  "mul " byte ", " b "\n" "add " r ", r0\n" "adc " s ", r1\n"                                            \
  "mul " byte ", " c "\n" "add " s ", r0\n"                                                              \
  TINYET_LPM byte ", Z+\n"                                                                               \
  "mul " byte ", " a "\n" "add " r ", r0\n" "adc " s ", r1\n"                                            \
  "mul " byte ", " b "\n" "add " s ", r0\n"                                                              \
  TINYET_LPM byte ", Z+\n"                                                                               \
  "mul " byte ", " a "\n" "add " p ", r1\n" "adc " q ", " d "\n" "adc " r ", " d "\n" "adc " s ", " d "\n" \
  "mul " byte ", " b "\n" "add " p ", r0\n" "adc " q ", r1\n" "adc " r ", " d "\n" "adc " s ", " d "\n"  \
  "mul " byte ", " c "\n" "add " q ", r0\n" "adc " r ", r1\n" "adc " s ", " d "\n"                       \
  TINYET_LPM byte ", Z\n"                                                                                \
  "adiw r30, 4\n"                                                                                        \
  "tst " byte "\n"                                                                                       \
  "breq 24f\n"                                                                                           \
  "mul " byte ", " a "\n" "mov " a ", r1\n"                                                              \
  "mul " byte ", " b "\n" "add " a ", r0\n"                                                              \
  "adc " p ", r1\n" "adc " q ", " d "\n" "adc " r ", " d "\n" "adc " s ", " d "\n"                       \
  "mul " byte ", " c "\n" "add " p ", r0\n" "adc " q ", r1\n" "adc " r ", " d "\n" "adc " s ", " d "\n"  \
  "24:\n"                                                                                                \
  TINYET_BYTES_CHANGE("add", "adc", p, q, r, s, byte)                                                    \
  "23:\n"
#endif

/* The output of a channel's sum. f: behind the channel's start. */
static inline int8_t tinyet_bytes_output(uint32_t sum, const TINYET_ROM uint32_t *f, uint8_t two_sided, int8_t low,
                                         int8_t high) {
#ifdef __AVR__
  uint32_t v;
  uint8_t byte;
  __asm__ volatile(
      "bst %[two_sided], 0\n"
      TINYET_BYTES_OUTPUT("%A[sum]", "%B[sum]", "%C[sum]", "%D[sum]", "%A[v]", "%B[v]", "%C[v]", "%D[v]", "%[byte]",
                          "mov %D[v], %[low]", "mov %D[v], %[high]")
      "clr __zero_reg__\n"
      : [sum] "+&r"(sum), "+z"(f), [v] "=&d"(v), [byte] "=&r"(byte)
      : [two_sided] "r"(two_sided), [low] "r"(low), [high] "r"(high)
      : "r0");
  return (int8_t)(uint8_t)(v >> 24);
#else
  uint32_t less = 0u;
  if (two_sided != 0u) {
    less = sum < f[0] ? f[1] : 0u;
    f += 2;
  }
  if (sum < f[0]) {
    const uint32_t upper = f[1] & 0xffffffu, lower = f[1] >> 24;
    return (int8_t)((sum * upper + (sum * lower >> 8) + (sum * f[2] >> 16) + f[3] - less) >> 24);
  }
  return (int32_t)sum < 0 ? low : high;
#endif
}

/* One group. scratch: four bytes for each tap. */
void tinyet_conv2d_s8_bytes_4x1(const int8_t *input, int8_t *output, void *scratch,
                                const tinyet_conv2d_s8_bytes_4x1_params *params);

/* groups == in_c == out_c, no dilation, up to 255 taps. scratch: an image of one channel with its borders, a byte a pixel. */
void tinyet_depthwise_s8_bytes(const int8_t *input, int8_t *output, void *scratch,
                               const tinyet_depthwise_s8_bytes_params *params);

/* 3x3 alone, with the weights of a channel in registers. */
void tinyet_depthwise_s8_bytes_3x3(const int8_t *input, int8_t *output, void *scratch,
                                   const tinyet_depthwise_s8_bytes_params *params);

/* scratch: `depth` bytes. */
void tinyet_linear_s8_bytes(const int8_t *input, int8_t *output, void *scratch,
                            const tinyet_linear_s8_bytes_params *params);

#ifdef __cplusplus
}
#endif

#endif
