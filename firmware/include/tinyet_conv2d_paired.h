/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of two pixels in one multiplication, for cores that add a product of 64 bits in one instruction but have none
 * for several products: a word 2^24 b + a of what two pixels see, times a weight, adds to both sums; of three pixels in two,
 * for those that add none; and of five in three. What makes this exact is proved for each layer when code is generated
 * (tinyet/ops/shared/paired.py, paired_threes.py, paired_fives.py), and so is what makes outputs of sums (tinyet_one_product.h,
 * tinyet_straight.h). */
#ifndef TINYET_CONV2D_PAIRED_H
#define TINYET_CONV2D_PAIRED_H

#include "tinyet_conv2d.h"
#include "tinyet_one_product.h"

#ifdef __cplusplus
extern "C" {
#endif

/* stream: for each two channels (zeros where the second is missing) the two words, low one first, of both channels' sums of
 * a pair before the first product: 2^24 bias + (bias - 128 sum(weights)) + 2^23; then multiplier, offset and shift of each.
 * weights: [pairs of channels][taps][2], taps rounded up to fours; what is missing is zero. */
typedef struct {
  tinyet_conv2d_shape shape;
  tinyet_one_product_outputs outputs;
  const TINYET_ROM int8_t *weights;
} tinyet_conv2d_s8_paired_4x2_params;

/* Three pixels' inputs in two words: 2^21 c + a and 2^10 c + b. What they add up to, with 2^20 for each sum before the first
 * product, is 2^21 c + a and 2^10 c + b again, of the sums: those of a and b have 21 bits, those of c 22, of which the first
 * word has eleven and the second the others, behind b. Taps are divided into parts, so many as cannot leave these bits; most
 * layers have one.
 * stream, for each four channels, in the order of their weights: of each part four times its taps less one; the taps that are
 * left out of the first turn behind the first tap, of eight, in the assembly for Thumb of sixteen; and what is done behind it:
 * 0 where there is no other part and no zero, else a sum of 1 where it is not the first, 2 where it is not the last, 4; 8 where
 * the tile is direct, or 16 where it is with sums of more bits or of several parts. Then of each channel what is added to its
 * sums, multiplier, place - 128 + shift, how far its outputs are behind those of the channel before in this tile, and zero, or
 * -2^30, as tinyet_straight.h has it; of a direct tile what is added to 2^11 times its sums, or 2^9 times, multiplier, and the
 * third of these: outputs are (2^11 sum + added) * multiplier / 2^32 >> 12, clamped. -1 behind all.
 * weights: [four channels][taps][4]; where channels are not a multiple of four, the last is there several times. */
typedef tinyet_conv2d_s8_paired_4x2_params tinyet_conv2d_s8_paired_threes_6x4_params;

/* Two pixels' words in runs of four taps, or of two where fours would leave 16 bits too often. stream, for each channel: the
 * sums of a pair before the first product, 2^16 bias + bias - 2^15 runs, and bias; 1 where runs are of two taps; for each
 * weight that is a run by itself, because the others leave no room for it, 2^31 + 2^11 tap + its lowest byte; then
 * multiplier, offset and shift. weights: [channels][taps], taps rounded up to fours; what is missing, or a run by itself, is
 * zero. */
typedef tinyet_conv2d_s8_paired_4x2_params tinyet_conv2d_s8_paired_fours_4x1_params;

/* The same words of eight pixels, whose sums leave 16 bits, and a fifth a tap that tells by what: the upper pixels of the
 * others, the i-th times 16^i. stream, for each channel: the sums of a word before the first product, 2^16 (start + 8) +
 * start, and of a fifth, 0x1111 (start + 8) + 0x88887777; weights, four a word, taps rounded up to fours with zeros; then
 * offset, multiplier, and 2^31 plus the fraction of the start, of 12 bits, by which outputs are
 * (2^12 sum + fraction) * multiplier / 2^32 + offset >> 12, clamped. */
typedef struct {
  tinyet_conv2d_shape shape;
  const TINYET_ROM uint32_t *stream;
  int32_t padding; /* what a tap outside the image reads */
  int32_t clamp_low, clamp_high;
  int32_t padded_h, padded_w; /* of the image with what windows see beside it, if it is copied so; else zero */
} tinyet_conv2d_s8_paired_checked_8x1_params;

/* Five pixels' inputs in three words, 2^19 d + a, 2^19 e + b and 2^12 e + 2^6 d + c, for sums that have 19 bits, with 2^18 each
 * before the first product: the first two have a and b and the lowest thirteen bits of d and e, which are taken out of the third,
 * and that has c, with the other six of each above it. Where the sums of all taps may leave 19 bits, these are in two parts.
 * stream, for each two channels, first those of one part: weights of both, a tap after another, and two bytes more where taps are
 * odd; then of each what is added to 2^12 times its sums, of two parts 2^11 times, the multiplier, and how far its outputs are
 * behind those of the channel before, of the first of either kind behind the pixel's: outputs are
 * (2^12 sum + added) * multiplier / 2^32 >> 12, clamped. */
typedef struct {
  tinyet_conv2d_shape shape;
  const TINYET_ROM uint32_t *stream;
  int32_t padding; /* what a tap outside the image reads */
  int32_t clamp_low, clamp_high;
  int32_t whole; /* channels of one part */
  int32_t split; /* taps of the first of two parts */
  int32_t padded_h, padded_w; /* of the image with what windows see beside it, if it is copied so; else zero */
} tinyet_conv2d_s8_paired_fives_5x2_params;

/* One group, no dilation, an even number of output channels. scratch: seventeen bytes for each tap, five for each output
 * channel, and an image that is copied with its padding. */
void tinyet_conv2d_s8_paired_fives_5x2(const int8_t *input, int8_t *output, void *scratch,
                                       const tinyet_conv2d_s8_paired_fives_5x2_params *params);

/* One group. scratch: twenty bytes for each tap, taps rounded up to fours, eight for each output channel, and an image that
 * is copied with its padding. */
void tinyet_conv2d_s8_paired_checked_8x1(const int8_t *input, int8_t *output, void *scratch,
                                         const tinyet_conv2d_s8_paired_checked_8x1_params *params);

/* One group. scratch: eight bytes for each tap, taps rounded up to fours, and four for each output channel. */
void tinyet_conv2d_s8_paired_fours_4x1(const int8_t *input, int8_t *output, void *scratch,
                                       const tinyet_conv2d_s8_paired_fours_4x1_params *params);

/* One group. scratch: sixteen bytes for each tap, and six for each output channel. */
void tinyet_conv2d_s8_paired_threes_6x4(const int8_t *input, int8_t *output, void *scratch,
                                        const tinyet_conv2d_s8_paired_threes_6x4_params *params);

/* One group. scratch: eight bytes for each tap, taps rounded up to fours, and four for each output channel, rounded up to
 * twos. */
void tinyet_conv2d_s8_paired_4x2(const int8_t *input, int8_t *output, void *scratch,
                                 const tinyet_conv2d_s8_paired_4x2_params *params);

#ifdef __cplusplus
}
#endif

#endif
