/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_paired_6x2.h"
#include "tinyet_windows_in_threes_body.h"

enum { PIXELS = 6, CHANNELS = 2 };

#if defined(__XTENSA__) && defined(__XTENSA_EL__)
typedef struct {
  int32_t low, high; /* bounds of outputs */
  int32_t two_sided;
  int8_t *output;
  int32_t row; /* bytes from pixel to pixel of the output */
  const word *patch;
  const int16_t *weights;
  const uint32_t *stream;
  int32_t right;
} tile_walk;

/* All channels of six pixels, or of three. In assembly of its own, for GCC has no functions without a frame on Xtensa; the same
 * for both of its calling conventions, of which one has register windows. */
#ifdef __cplusplus
extern "C" {
#endif
typedef void tile(const tile_walk *walk);
extern tile tinyet_paired_6x2_xtensa, tinyet_paired_3x2_xtensa;
#ifdef __cplusplus
}
#endif

#ifdef __XTENSA_WINDOWED_ABI__
#define ENTER "entry a1, 144\n" "s32i a0, a1, 108\n"
#define LEAVE "l32i a0, a1, 108\n" "retw\n"
#else
#define ENTER                \
  "addi a1, a1, -128\n"      \
  "s32i a0, a1, 108\n"       \
  "s32i a12, a1, 112\n"      \
  "s32i a13, a1, 116\n"      \
  "s32i a14, a1, 120\n"      \
  "s32i a15, a1, 124\n"
#define LEAVE                \
  "l32i a0, a1, 108\n"       \
  "l32i a12, a1, 112\n"      \
  "l32i a13, a1, 116\n"      \
  "l32i a14, a1, 120\n"      \
  "l32i a15, a1, 124\n"      \
  "addi a1, a1, 127\n"       \
  "addi a1, a1, 1\n"         \
  "ret\n"
#endif

/* six(x) is x where a tile has six pixels, nothing where it has three. */
#define WHOLE(x) x
#define NONE(x) ""
#define PRODUCTS(x, a, b)      \
  "mull a0, " x ", a12\n"      \
  "mull " x ", " x ", a13\n"   \
  "add " a ", " a ", a0\n"     \
  "add " b ", " b ", " x "\n"
#define TAP(i, six)                   \
  "l32i a2, a14, 16*" #i "\n"         \
  "l16si a12, a15, 4*" #i "\n"        \
  "l16si a13, a15, 4*" #i "+2\n"      \
  "l32i a3, a14, 16*" #i "+4\n"       \
  PRODUCTS("a2", "a4", "a8")          \
  six("l32i a2, a14, 16*" #i "+8\n")  \
  PRODUCTS("a3", "a5", "a9")          \
  six("l32i a3, a14, 16*" #i "+12\n"  \
      PRODUCTS("a2", "a6", "a10") PRODUCTS("a3", "a7", "a11"))
#define LABELLED(name, i, six) ".L" name "_" #i ":\n" TAP(i, six)
/* Sums of three pixels: those of the first where its word was, of the second in `between`, of the third where the other word
 * was. */
#define OPEN(word, other, between)                 \
  "extui " between ", " word ", 21, 11\n"          \
  "slli " between ", " between ", 10\n"            \
  "sub " between ", " other ", " between "\n"      \
  "and " word ", " word ", a12\n"                  \
  "and " between ", " between ", a12\n"            \
  "sub " other ", " other ", " between "\n"        \
  "srli " other ", " other ", 10\n"
#define ALL(op, six) op("a4", 0) op("a8", 4) op("a5", 8) six(op("a6", 12) op("a9", 16) op("a7", 20))
#define ADD_BEFORE(sum, at) "l32i a0, a13, " #at "\n" "add " sum ", " sum ", a0\n"
#define KEEP(sum, at) "s32i " sum ", a13, " #at "\n"
#define ADD_BIAS(sum, at) "add " sum ", " sum ", a13\n"

/* One output, of a sum below the limit in a10 by upper and lower in a11 and a12 and an offset in a13, to a14, from where a15
 * bytes lead to the next. Of others a bound. */
#define SCALED(sum)                   \
  "mull a0, " sum ", a12\n"           \
  "mull " sum ", " sum ", a11\n"      \
  "srl a0, a0\n"                      \
  "add " sum ", " sum ", a13\n"       \
  "add " sum ", " sum ", a0\n"        \
  "extui " sum ", " sum ", 24, 8\n"
#define ONE_SIDED(n, sum, bound)      \
  "bgeu " sum ", a10, 1" #n bound "\n" \
  SCALED(sum)                         \
  "2" #n ":\n" "s8i " sum ", a14, 0\n"
/* Those that are halved away from zero below the split; both are in the stream, at a2. */
#define TWO_SIDED(n, sum, bound)      \
  "bgeu " sum ", a10, 1" #n bound "\n" \
  "l32i a0, a2, 8\n"                  \
  "bgeu " sum ", a0, 3" #n "f\n"      \
  "l32i a0, a2, 12\n"                 \
  "sub a13, a13, a0\n"                \
  SCALED(sum)                         \
  "l32i a13, a2, 28\n"                \
  "j 2" #n "f\n"                      \
  "3" #n ":\n" SCALED(sum)            \
  "2" #n ":\n" "s8i " sum ", a14, 0\n"
#define BOUND(n, sum, output)         \
  "1" #n ":\n"                        \
  "l32i a0, a1, 0\n"                  \
  "bltz " sum ", 4" #n "f\n"          \
  "l32i a0, a1, 4\n"                  \
  "4" #n ":\n"                        \
  "mov " sum ", a0\n"                 \
  "j 2" #n output "\n"
#define ONWARD "add a14, a14, a15\n"
#define BOUNDS(n, a, b, c, output) BOUND(n##0, a, output) BOUND(n##1, b, output) BOUND(n##2, c, output)
#define THREE(kind, n, a, b, c, bound) kind(n##0, a, bound) ONWARD kind(n##1, b, bound) ONWARD kind(n##2, c, bound)
/* near: what a branch before them leads to. */
#define OUTPUTS(kind, n, m, six, near)                  \
  THREE(kind, n, "a4", "a8", "a5", "f")                 \
  "j 5f\n" near BOUNDS(n, "a4", "a8", "a5", "b")        \
  six(BOUNDS(m, "a6", "a9", "a7", "f"))                 \
  "5:\n"                                                \
  six(ONWARD THREE(kind, m, "a6", "a9", "a7", "b"))
/* What makes outputs of a channel, whose words are at a2 and those of the rounding so many bytes behind. */
#define ROUNDING(at)                  \
  "l32i a0, a2, 4\n"                  \
  "l32i a14, a1, 12\n"                \
  "l32i a10, a2, " #at "\n"           \
  "l32i a11, a2, " #at "+4\n"         \
  "l32i a12, a2, " #at "+8\n"         \
  "l32i a13, a2, " #at "+12\n"        \
  "add a14, a14, a0\n"                \
  "l32i a15, a1, 16\n"
#define COPIED(at) "l32i a4, a2, " #at "\n" "s32i a4, a1, " #at "\n"
/* The second channel's words, where the first's were. */
#define SECOND(six) "l32i a4, a1, 40\n" "l32i a5, a1, 44\n" six("l32i a6, a1, 48\n" "l32i a7, a1, 52\n")

/* On the stack what the walk has up to the weights, at 28 where a part's words are in the stream, at 32 where its weights end,
 * from 40 on the second channel's words, from 56 on the sums of parts. In the products the words of the first channel are in
 * a4 ... a7, of the second in a8 ... a11, inputs at a14, weights at a15. */
#define TILE(symbol, name, six)                                                                       \
  __asm__(                                                                                            \
      ".section .text." symbol ", \"ax\"\n"                                                           \
      ".align 4\n"                                                                                    \
      ".literal_position\n"                                                                           \
      ".literal .L" name "_turns_at, " name "_turns\n"                                               \
      ".literal .L" name "_first, 0x100000\n"                                                         \
      ".literal .L" name "_second, 0x40100000\n"                                                      \
      ".literal .L" name "_mask, 0x1fffff\n"                                                          \
      ".align 4\n"                                                                                    \
      ".global " symbol "\n"                                                                          \
      ".type " symbol ", @function\n"                                                                 \
      symbol ":\n" ENTER                                                                              \
      COPIED(0) COPIED(4) COPIED(8) COPIED(12) COPIED(16) COPIED(20)                                  \
      "l32i a15, a2, 24\n"                                                                            \
      "l32i a4, a2, 32\n"                                                                             \
      "l32i a2, a2, 28\n"                                                                             \
      "ssr a4\n"                                                                                      \
      ".L" name "_tile:\n"                                                                            \
      "l32i a14, a1, 20\n"                                                                            \
      ".L" name "_part:\n"                                                                            \
      "l32i a3, a2, 0\n"                                                                              \
      "l32i a12, a2, 4\n"                                                                             \
      "l32r a13, .L" name "_turns_at\n"                                                              \
      "s32i a2, a1, 28\n"                                                                             \
      "add a12, a12, a15\n"                                                                           \
      "add a13, a13, a3\n"                                                                            \
      "sub a15, a15, a3\n"                                                                            \
      "l32i a13, a13, 0\n"                                                                            \
      "s32i a12, a1, 32\n"                                                                            \
      "slli a3, a3, 2\n"                                                                              \
      "sub a14, a14, a3\n"                                                                            \
      "l32r a4, .L" name "_first\n"                                                                   \
      "l32r a5, .L" name "_second\n"                                                                  \
      "mov a8, a4\n" "mov a9, a5\n"                                                                   \
      six("mov a6, a4\n" "mov a7, a5\n" "mov a10, a4\n" "mov a11, a5\n")                              \
      "jx a13\n"                                                                                      \
      LABELLED(name, 0, six) LABELLED(name, 1, six) LABELLED(name, 2, six) LABELLED(name, 3, six)     \
      LABELLED(name, 4, six) LABELLED(name, 5, six) LABELLED(name, 6, six) LABELLED(name, 7, six)     \
      LABELLED(name, 8, six) LABELLED(name, 9, six) LABELLED(name, 10, six) LABELLED(name, 11, six)   \
      LABELLED(name, 12, six) LABELLED(name, 13, six) LABELLED(name, 14, six) LABELLED(name, 15, six) \
      "l32i a0, a1, 32\n"                                                                             \
      "addi a15, a15, 64\n"                                                                           \
      "addmi a14, a14, 256\n"                                                                         \
      "beq a15, a0, 1f\n"                                                                             \
      "j .L" name "_0\n"                                                                              \
      "2:\n" "j .L" name "_another\n"                                                                 \
      "1:\n"                                                                                          \
      "l32i a2, a1, 28\n"                                                                             \
      "l32r a12, .L" name "_mask\n"                                                                   \
      "s32i a8, a1, 40\n" "s32i a9, a1, 44\n"                                                         \
      six("s32i a10, a1, 48\n" "s32i a11, a1, 52\n")                                                  \
      "l32i a3, a2, 8\n"                                                                              \
      "addi a2, a2, 12\n"                                                                             \
      "bbsi a3, 1, 2b\n"                                                                              \
      "s32i a15, a1, 24\n"                                                                            \
      ".L" name "_channel:\n" OPEN("a4", "a5", "a8") six(OPEN("a6", "a7", "a9"))                      \
      "bbci a3, 0, 6f\n"                                                                              \
      "addi a13, a1, 56\n"                                                                            \
      "bbci a3, 3, 5f\n"                                                                              \
      "addi a13, a1, 80\n"                                                                            \
      "5:\n" ALL(ADD_BEFORE, six)                                                                     \
      "6:\n"                                                                                          \
      "l32i a13, a2, 0\n"                                                                             \
      "l32i a0, a1, 8\n" ALL(ADD_BIAS, six)                                                           \
      "bnez a0, 9f\n"                                                                                 \
      ROUNDING(8) OUTPUTS(ONE_SIDED, 1, 2, six, "9:\n" "j .L" name "_two_sided\n")                    \
      "addi a2, a2, 24\n"                                                                             \
      ".L" name "_next:\n"                                                                            \
      "bbsi a3, 3, 7f\n"                                                                              \
      "addi a3, a3, 8\n"                                                                              \
      "l32r a12, .L" name "_mask\n"                                                                   \
      SECOND(six)                                                                                     \
      "j .L" name "_channel\n"                                                                        \
      "7:\n"                                                                                          \
      "l32i a0, a2, 0\n"                                                                              \
      "l32i a15, a1, 24\n"                                                                            \
      "bltz a0, 8f\n"                                                                                 \
      "j .L" name "_tile\n"                                                                           \
      "8:\n" LEAVE                                                                                    \
      ".L" name "_two_sided:\n"                                                                       \
      ROUNDING(16) OUTPUTS(TWO_SIDED, 3, 4, six, "")                                                  \
      "addi a2, a2, 32\n"                                                                             \
      "j .L" name "_next\n"                                                                           \
      ".L" name "_another:\n"                                                                         \
      "addi a13, a1, 56\n"                                                                            \
      "2:\n" OPEN("a4", "a5", "a8") six(OPEN("a6", "a7", "a9"))                                       \
      "bbci a3, 0, 3f\n" ALL(ADD_BEFORE, six)                                                         \
      "3:\n" ALL(KEEP, six)                                                                           \
      "addi a13, a13, 24\n"                                                                           \
      SECOND(six)                                                                                     \
      "addi a3, a3, 8\n" /* the first time it sets the bit */                                         \
      "bbsi a3, 3, 2b\n"                                                                              \
      "j .L" name "_part\n"                                                                           \
      ".size " symbol ", . - " symbol "\n"                                                            \
      ".section .rodata." symbol ", \"a\"\n"                                                          \
      ".align 4\n"                                                                                    \
      ".type " name "_turns, @object\n"                                                               \
      name "_turns:\n"                                                                                \
      ".word .L" name "_0, .L" name "_1, .L" name "_2, .L" name "_3\n"                                \
      ".word .L" name "_4, .L" name "_5, .L" name "_6, .L" name "_7\n"                                \
      ".word .L" name "_8, .L" name "_9, .L" name "_10, .L" name "_11\n"                              \
      ".word .L" name "_12, .L" name "_13, .L" name "_14, .L" name "_15\n"                            \
      ".size " name "_turns, . - " name "_turns\n"                                                    \
      ".text\n");
TILE("tinyet_paired_6x2_xtensa", "tinyet_paired_6x2", WHOLE)
TILE("tinyet_paired_3x2_xtensa", "tinyet_paired_3x2", NONE)
#undef ENTER
#undef LEAVE
#undef WHOLE
#undef NONE
#undef PRODUCTS
#undef TAP
#undef LABELLED
#undef OPEN
#undef ALL
#undef ADD_BEFORE
#undef KEEP
#undef ADD_BIAS
#undef SCALED
#undef ONE_SIDED
#undef TWO_SIDED
#undef BOUND
#undef ONWARD
#undef BOUNDS
#undef THREE
#undef OUTPUTS
#undef ROUNDING
#undef COPIED
#undef SECOND
#undef TILE

static void outputs(const void *patch, int8_t *output, int32_t row, int32_t count,
                    const tinyet_conv2d_s8_paired_threes_6x2_params *params) {
  const tinyet_packed_words *const layer = &params->words;
  const tile_walk walk = {layer->clamp_low, layer->clamp_high, layer->two_sided, output, row, (const word *)patch,
                          params->weights, layer->stream, layer->right};
  if (count > PIXELS / 2) {
    tinyet_paired_6x2_xtensa(&walk);
  } else {
    tinyet_paired_3x2_xtensa(&walk);
  }
}
#else
/* Of one channel and three pixels, whose inputs are two words a tap. */
static void add_part(uint32_t sums[3], const word *x, const TINYET_ROM int16_t *weights, int32_t taps) {
  uint32_t first = FIRST_SUM, second = SECOND_SUM;
  for (; taps > 0; taps--) {
    const int32_t weight = *weights;
    first += x[0] * (uint32_t)weight;
    second += x[1] * (uint32_t)weight;
    x += STEP;
    weights += CHANNELS;
  }
  add_three(sums, first, second);
}

static void outputs(const void *patch, int8_t *output, int32_t row, int32_t count,
                    const tinyet_conv2d_s8_paired_threes_6x2_params *params) {
  const tinyet_packed_words *const layer = &params->words;
  const TINYET_ROM uint32_t *part = layer->stream;
  const TINYET_ROM int16_t *weights = params->weights;
  const int8_t low = (int8_t)layer->clamp_low, high = (int8_t)layer->clamp_high;
  while ((part[0] >> 31) == 0) {
    uint32_t sums[CHANNELS][PIXELS] = {{0}};
    const word *x = (const word *)patch;
    for (int32_t more = 1; more != 0;) {
      const int32_t taps = (int32_t)(part[1] / 4);
      for (int32_t c = 0; c < CHANNELS; c++) {
        for (int32_t i = 0; i < count; i += 3) {
          add_part(sums[c] + i, x + 2 * (i / 3), weights + c, taps);
        }
      }
      more = (int32_t)(part[2] & 2u);
      weights += CHANNELS * taps;
      x += STEP * taps;
      part += 3;
    }
    for (int32_t c = 0; c < CHANNELS; c++) {
      int8_t *const to = output + (int32_t)part[1];
      for (int32_t i = 0; i < count; i++) {
        to[i * row] = tinyet_two_products(sums[c][i] + part[0], part + 2, layer->right, layer->two_sided, low, high);
      }
      part += layer->two_sided != 0 ? 8 : 6;
    }
  }
}
#endif

#define KERNEL tinyet_conv2d_s8_paired_threes_6x2
#define PARAMS tinyet_conv2d_s8_paired_threes_6x2_params
#define IS_TILE(count) ((count) == PIXELS || (count) == PIXELS / 2)
#define PADDING params->words.padding
#include "tinyet_conv2d_threes_body.h"
