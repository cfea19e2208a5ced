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
  TINYET_BYTES_RIGHT = 8 /* words.right of all these layers: a shift by a byte is none */
};

/* words.stream, for each channel: the sum before the first product, less where its first output step begins; then what makes
 * outputs of sums, as in tinyet_packed_words.h. words.padding: plus 128. weights: channel by channel, plus 128; of depthwise
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
} tinyet_depthwise_s8_bytes_3x3_params;

typedef struct {
  int32_t rows, depth;
  tinyet_packed_words words;
  const TINYET_ROM uint8_t *weights;
} tinyet_linear_s8_bytes_params;

/* Sizes and places of what lies in the arena: 32 bits are four registers of an AVR, whose memory 16 bits reach. What comes of
 * 32 bits fits, which is checked when code is generated. */
#ifdef __AVR__
typedef int16_t tinyet_extent;
#define TINYET_EXTENT(x) ((tinyet_extent)(x))
#else
typedef int32_t tinyet_extent;
#define TINYET_EXTENT(x) (x)
#endif

#ifdef __AVR__
__extension__ typedef __uint24 tinyet_bytes_sum; /* of up to 256 products */
__extension__ typedef __int24 tinyet_window_sum;
#define TINYET_BYTES_TAP(x, sum) \
  "ld %[" x "], X+\n"            \
  "mul %[" x "], %[w]\n"         \
  "add %A[" sum "], r0\n"        \
  "adc %B[" sum "], r1\n"        \
  "adc %C[" sum "], %[zero]\n"
#endif

/* Adds a channel's products with four pixels' inputs, four a tap, to their sums. */
static inline void tinyet_bytes_4x1(const uint8_t *x, const TINYET_ROM uint8_t *w, tinyet_extent taps, uint32_t *sums) {
#ifdef __AVR__
  while (taps > 0) {
    uint8_t count = taps > 256 ? 0u : (uint8_t)taps, value, weight;
    const uint8_t zero = 0u;
    tinyet_bytes_sum a = 0u, b = 0u, c = 0u, d = 0u;
    __asm__ volatile(
        "1:\n"
        "lpm %[w], Z+\n" TINYET_BYTES_TAP("x", "a") TINYET_BYTES_TAP("x", "b") TINYET_BYTES_TAP("x", "c")
            TINYET_BYTES_TAP("x", "d")
        "dec %[count]\n"
        "brne 1b\n"
        "clr __zero_reg__\n"
        : "+x"(x), "+z"(w), [count] "+r"(count), [x] "=&r"(value), [w] "=&r"(weight), [a] "+r"(a), [b] "+r"(b),
          [c] "+r"(c), [d] "+r"(d)
        : [zero] "r"(zero)
        : "memory", "r0");
    sums[0] += a;
    sums[1] += b;
    sums[2] += c;
    sums[3] += d;
    taps = taps > 256 ? taps - 256 : 0;
  }
#else
  for (; taps > 0; taps--, x += TINYET_BYTES_PIXELS) {
    const uint32_t weight = *w++;
    sums[0] += x[0] * weight;
    sums[1] += x[1] * weight;
    sums[2] += x[2] * weight;
    sums[3] += x[3] * weight;
  }
#endif
}

/* The sum of a channel's products with one row of inputs. */
static inline uint32_t tinyet_bytes_1x1(const uint8_t *x, const TINYET_ROM uint8_t *w, tinyet_extent taps) {
  uint32_t sum = 0u;
#ifdef __AVR__
  while (taps > 0) {
    uint8_t count = taps > 256 ? 0u : (uint8_t)taps, value, weight;
    const uint8_t zero = 0u;
    tinyet_bytes_sum a = 0u;
    __asm__ volatile(
        "1:\n"
        "lpm %[w], Z+\n" TINYET_BYTES_TAP("x", "a")
        "dec %[count]\n"
        "brne 1b\n"
        "clr __zero_reg__\n"
        : "+x"(x), "+z"(w), [count] "+r"(count), [x] "=&r"(value), [w] "=&r"(weight), [a] "+r"(a)
        : [zero] "r"(zero)
        : "memory", "r0");
    sum += a;
    taps = taps > 256 ? taps - 256 : 0;
  }
#else
  for (; taps > 0; taps--) {
    sum += *x++ * (uint32_t)*w++;
  }
#endif
  return sum;
}

/* The sum of the products of nine weights, which have signs, with three rows of inputs, so many bytes from end to begin. */
static inline int32_t tinyet_bytes_3x3(const uint8_t *x, const TINYET_ROM int8_t *w, tinyet_extent turn) {
#ifdef __AVR__
  uint8_t value, weight;
  const uint8_t zero = 0u;
  tinyet_window_sum sum = 0;
/* A product's sign is that of the weight: below zero, one is taken off the upper byte. */
#define TINYET_BYTES_SIGNED            \
  "ld %[x], X+\n"                      \
  "lpm %[w], Z+\n"                     \
  "mulsu %[w], %[x]\n"                 \
  "add %A[sum], r0\n"                  \
  "adc %B[sum], r1\n"                  \
  "adc %C[sum], %[zero]\n"             \
  "sbrc r1, 7\n"                       \
  "dec %C[sum]\n"
#define TINYET_BYTES_TURN "add r26, %A[turn]\n" "adc r27, %B[turn]\n"
  __asm__ volatile(
      TINYET_BYTES_SIGNED TINYET_BYTES_SIGNED TINYET_BYTES_SIGNED TINYET_BYTES_TURN
          TINYET_BYTES_SIGNED TINYET_BYTES_SIGNED TINYET_BYTES_SIGNED TINYET_BYTES_TURN
              TINYET_BYTES_SIGNED TINYET_BYTES_SIGNED TINYET_BYTES_SIGNED
      "clr __zero_reg__\n"
      : "+x"(x), "+z"(w), [x] "=&a"(value), [w] "=&a"(weight), [sum] "+r"(sum)
      : [zero] "r"(zero), [turn] "r"(turn)
      : "memory", "r0");
#undef TINYET_BYTES_SIGNED
#undef TINYET_BYTES_TURN
  return sum;
#else
  int32_t sum = 0;
  for (int32_t i = 0; i < 3; i++) {
    sum += x[0] * w[0] + x[1] * w[1] + x[2] * w[2];
    x += 3 + turn;
    w += 3;
  }
  return sum;
#endif
}

#undef TINYET_BYTES_TAP

/* The output of a channel's sum, as tinyet_two_products gives it. f: behind the channel's start. */
static inline int8_t tinyet_bytes_output(uint32_t sum, const TINYET_ROM uint32_t *f, const tinyet_packed_words *words) {
#ifdef __AVR__
  uint32_t v;
  uint8_t byte;
  const uint8_t two_sided = (uint8_t)words->two_sided;
  const int8_t low = (int8_t)words->clamp_low, high = (int8_t)words->clamp_high;
/* Carry: whether the sum is less than what Z points at. */
#define TINYET_BYTES_COMPARE       \
  "lpm %[byte], Z+\n"              \
  "cp %A[sum], %[byte]\n"          \
  "lpm %[byte], Z+\n"              \
  "cpc %B[sum], %[byte]\n"         \
  "lpm %[byte], Z+\n"              \
  "cpc %C[sum], %[byte]\n"         \
  "lpm %[byte], Z+\n"              \
  "cpc %D[sum], %[byte]\n"
#define TINYET_BYTES_CHANGE(first, next)                                       \
  "lpm %[byte], Z+\n" first " %A[v], %[byte]\n"                                \
  "lpm %[byte], Z+\n" next " %B[v], %[byte]\n"                                 \
  "lpm %[byte], Z+\n" next " %C[v], %[byte]\n"                                 \
  "lpm %[byte], Z+\n" next " %D[v], %[byte]\n"
  /* Sums within limits have 24 bits: their upper byte is taken for zero. Of 40 bits of the factor times these, the lowest eight
   * are dropped, as the shift does it. */
  __asm__ volatile(
      "clr %A[v]\n"
      "clr %B[v]\n"
      "movw %C[v], %A[v]\n"
      "tst %[two_sided]\n"
      "breq 2f\n" TINYET_BYTES_COMPARE
      "brcs 1f\n"
      "adiw r30, 4\n"
      "rjmp 2f\n"
      "1:\n" TINYET_BYTES_CHANGE("sub", "sbc")
      "2:\n" TINYET_BYTES_COMPARE
      "brcs 3f\n"
      "mov %D[v], %[high]\n"
      "sbrc %D[sum], 7\n"
      "mov %D[v], %[low]\n"
      "rjmp 4f\n"
      "3:\n"
      "clr %D[sum]\n"
      /* upper */
      "lpm %[byte], Z+\n"
      "mul %[byte], %A[sum]\n" "add %A[v], r0\n" "adc %B[v], r1\n" "adc %C[v], %D[sum]\n" "adc %D[v], %D[sum]\n"
      "mul %[byte], %B[sum]\n" "add %B[v], r0\n" "adc %C[v], r1\n" "adc %D[v], %D[sum]\n"
      "mul %[byte], %C[sum]\n" "add %C[v], r0\n" "adc %D[v], r1\n"
      "lpm %[byte], Z+\n"
      "mul %[byte], %A[sum]\n" "add %B[v], r0\n" "adc %C[v], r1\n" "adc %D[v], %D[sum]\n"
      "mul %[byte], %B[sum]\n" "add %C[v], r0\n" "adc %D[v], r1\n"
      "mul %[byte], %C[sum]\n" "add %D[v], r0\n"
      "lpm %[byte], Z+\n"
      "mul %[byte], %A[sum]\n" "add %C[v], r0\n" "adc %D[v], r1\n"
      "mul %[byte], %B[sum]\n" "add %D[v], r0\n"
      "lpm %[byte], Z+\n"
      "mul %[byte], %A[sum]\n" "add %D[v], r0\n"
      /* lower, of which there is one byte */
      "lpm %[byte], Z+\n"
      "adiw r30, 3\n"
      "mul %[byte], %A[sum]\n" "add %A[v], r1\n" "adc %B[v], %D[sum]\n" "adc %C[v], %D[sum]\n" "adc %D[v], %D[sum]\n"
      "mul %[byte], %B[sum]\n" "add %A[v], r0\n" "adc %B[v], r1\n" "adc %C[v], %D[sum]\n" "adc %D[v], %D[sum]\n"
      "mul %[byte], %C[sum]\n" "add %B[v], r0\n" "adc %C[v], r1\n" "adc %D[v], %D[sum]\n"
      /* offset */
      TINYET_BYTES_CHANGE("add", "adc")
      "clr __zero_reg__\n"
      "4:\n"
      : [sum] "+r"(sum), "+z"(f), [v] "=&r"(v), [byte] "=&r"(byte)
      : [two_sided] "r"(two_sided), [low] "r"(low), [high] "r"(high)
      : "r0");
#undef TINYET_BYTES_COMPARE
#undef TINYET_BYTES_CHANGE
  return (int8_t)(uint8_t)(v >> 24);
#else
  return tinyet_two_products(sum, f, TINYET_BYTES_RIGHT, words->two_sided, (int8_t)words->clamp_low,
                             (int8_t)words->clamp_high);
#endif
}

/* One group. scratch: four bytes for each tap. */
void tinyet_conv2d_s8_bytes_4x1(const int8_t *input, int8_t *output, void *scratch,
                                const tinyet_conv2d_s8_bytes_4x1_params *params);

/* groups == in_c == out_c, 3x3, no dilation. scratch: an image of one channel with its borders, a byte a pixel. */
void tinyet_depthwise_s8_bytes_3x3(const int8_t *input, int8_t *output, void *scratch,
                                   const tinyet_depthwise_s8_bytes_3x3_params *params);

/* scratch: `depth` bytes. */
void tinyet_linear_s8_bytes(const int8_t *input, int8_t *output, void *scratch,
                            const tinyet_linear_s8_bytes_params *params);

#ifdef __cplusplus
}
#endif

#endif
