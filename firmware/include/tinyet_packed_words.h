/* SPDX-License-Identifier: Apache-2.0 */
/* Two output channels in one multiplication of 32 bits, for cores that have no instruction for two products: a word
 * 65536 b + a of their weights, times an input. What makes this exact is proved for each layer when code is generated
 * (tinyet/ops/shared/packed_words.py), and so are outputs of sums by two products of 32 bits
 * (tinyet/ops/shared/two_products.py). */
#ifndef TINYET_PACKED_WORDS_H
#define TINYET_PACKED_WORDS_H

#include "tinyet_conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The stream, for each block of four channels a, b, c, d (zeros where a channel is missing), all modulo 2^32:
 *   4 words     sums before the first product, less where the channel's first output step begins: 65536 b + a, b, 65536 d + c, d
 *   runs        2 words, where in straight code as many taps as there are begin, in bytes, and their number;
 *               2 words 65536 b + a and 65536 d + c that the products are added to; for each tap 2 words of weights
 *   2 words     where to go on behind the last run, and 0
 *   4 x 4 words limit, upper, lower, offset of each channel; 4 x 6 where two_sided: split and less before them */
typedef struct {
  const TINYET_ROM uint32_t *stream;
  int32_t out_c;
  int32_t padding; /* what a tap outside the image reads, plus 128 */
  int32_t right;
  int32_t two_sided;
  int32_t clamp_low, clamp_high;
} tinyet_packed_words;

typedef struct {
  tinyet_conv2d_shape shape;
  tinyet_packed_words words;
} tinyet_conv2d_s8_packed_words_params;

typedef struct {
  int32_t rows, depth;
  tinyet_packed_words words;
} tinyet_linear_s8_packed_words_params;

/* One depthwise layer; words as those of above, but the stream has, for each channel: the sum before the first product, the
 * nine weights, and what makes an output of the sum. On Xtensa weights are four a word, the first one in the lowest byte, and
 * zeros behind them. */
typedef tinyet_conv2d_s8_packed_words_params tinyet_depthwise_s8_chw_3x3_params;

/* The output of a sum, of which `start` has been subtracted: limit, upper, lower and offset at f, where two_sided behind split
 * and less. A function for each address space: AVR's flash has one of its own. */
#define TINYET_TWO_PRODUCTS(name, pointer)                                                                           \
  static inline int8_t name(uint32_t a, pointer f, int32_t right, int32_t two_sided, int8_t low, int8_t high) {      \
    uint32_t less = 0u;                                                                                              \
    if (two_sided != 0) {                                                                                            \
      less = a < f[0] ? f[1] : 0u;                                                                                   \
      f += 2;                                                                                                        \
    }                                                                                                                \
    if (__builtin_expect(a < f[0], 1)) {                                                                             \
      return (int8_t)((a * f[1] + (a * f[2] >> right) + f[3] - less) >> 24);                                         \
    }                                                                                                                \
    return (int32_t)a < 0 ? low : high;                                                                              \
  }

TINYET_TWO_PRODUCTS(tinyet_two_products, const TINYET_ROM uint32_t *)

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
/* What the assembly of these kernels has in common. */
/* The output of a sum within the limit; `lower` is used up. right: a register or, as in "#14", a number. */
#define TINYET_THUMB1_SCALED(sum, upper, lower, offset, right) \
  "muls " lower ", " sum ", " lower "\n" \
  "lsrs " lower ", " lower ", " right "\n" \
  "muls " sum ", " upper ", " sum "\n"   \
  "adds " sum ", " sum ", " lower "\n"   \
  "adds " sum ", " sum ", " offset "\n"  \
  "lsrs " sum ", " sum ", #24\n"
/* What is subtracted from the offset of a sum below the split, in `less`; `split` is used up. */
#define TINYET_THUMB1_BELOW(sum, split, less) \
  "cmp " sum ", " split "\n"             \
  "sbcs " split ", " split ", " split "\n" \
  "ands " less ", " less ", " split "\n"
/* Of the bounds, high in the lowest byte and low in the next one, the one that a sum beyond the limit has, by its sign, in
 * the lowest byte of `bounds`. */
#define TINYET_THUMB1_BOUND(sum, bounds) \
  "lsrs " sum ", " sum ", #31\n"         \
  "lsls " sum ", " sum ", #3\n"          \
  "lsrs " bounds ", " bounds ", " sum "\n"
#endif

/* All channels of a pixel. inputs: those of its taps, plus 128 each. */
void tinyet_packed_pixel(const uint8_t *inputs, int8_t *output, const tinyet_packed_words *layer);

/* Bytes of int8_t plus 128. */
void tinyet_packed_inputs(uint8_t *to, const int8_t *from, int32_t count);

/* One group. scratch: a byte for each tap. */
void tinyet_conv2d_s8_packed_words(const int8_t *input, int8_t *output, void *scratch,
                                   const tinyet_conv2d_s8_packed_words_params *params);

/* 1x1, stride 1, no padding. scratch: in_c bytes. */
void tinyet_conv2d_1x1_s8_packed_words(const int8_t *input, int8_t *output, void *scratch,
                                       const tinyet_conv2d_s8_packed_words_params *params);

/* scratch: `depth` bytes. */
void tinyet_linear_s8_packed_words(const int8_t *input, int8_t *output, void *scratch,
                                   const tinyet_linear_s8_packed_words_params *params);

/* groups == in_c == out_c, 3x3, no dilation. scratch: an image of one channel with its borders, a byte a pixel; on Xtensa of
 * four, a word a pixel. */
void tinyet_depthwise_s8_chw_3x3(const int8_t *input, int8_t *output, void *scratch,
                                 const tinyet_depthwise_s8_chw_3x3_params *params);

#ifdef __cplusplus
}
#endif

#endif
