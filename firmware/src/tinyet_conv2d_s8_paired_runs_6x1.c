/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_paired_6x1.h"

enum { PIXELS = 6, STEP = 3 /* words from tap to tap */ };

typedef uint32_t __attribute__((may_alias)) word;

/* Bytes of two pixels as one word: of each that with another upper bit is 128 more, which is taken off again. */
static inline uint32_t pair_of(int8_t first, int8_t second) {
  return ((((uint32_t)(uint8_t)second << 16) | (uint32_t)(uint8_t)first) ^ UINT32_C(0x00800080)) - UINT32_C(0x00800080);
}

/* A pixel's input: the first of two is a word by itself, to which the second is added. */
static inline void put(word *to, int32_t value, int32_t second) {
  *to = second != 0 ? *to + ((uint32_t)value << 16) : (uint32_t)value;
}

/* What the window of one pixel sees, tap by tap. */
static __attribute__((noinline)) void gather(word *patch, const int8_t *image, int32_t top, int32_t left,
                                             const tinyet_conv2d_shape *s, int32_t padding, int32_t second) {
  const int32_t in_c = s->in_c;
  for (int32_t i = 0, y = top; i < s->kernel_h; i++, y += s->dilation_h) {
    for (int32_t j = 0, x = left; j < s->kernel_w; j++, x += s->dilation_w) {
      if (y < 0 || y >= s->in_h || x < 0 || x >= s->in_w) {
        for (int32_t c = in_c; c > 0; c--, patch += STEP) {
          put(patch, padding, second);
        }
      } else {
        const int8_t *from = image + (y * s->in_w + x) * in_c;
        for (int32_t c = in_c; c > 0; c--, patch += STEP) {
          put(patch, *from++, second);
        }
      }
    }
  }
}

/* Of both pixels of a pair whose windows, of taps without gaps, lie in the image. */
static __attribute__((noinline)) void gather_two(word *patch, const int8_t *first, const int8_t *second,
                                                 const tinyet_conv2d_shape *s) {
  const int32_t row = s->kernel_w * s->in_c, turn = s->in_w * s->in_c - row;
  for (int32_t i = s->kernel_h; i > 0; i--) {
    int32_t left = row;
    for (; left >= 4; left -= 4) {
      patch[0] = pair_of(first[0], second[0]);
      patch[STEP] = pair_of(first[1], second[1]);
      patch[2 * STEP] = pair_of(first[2], second[2]);
      patch[3 * STEP] = pair_of(first[3], second[3]);
      patch += 4 * STEP;
      first += 4;
      second += 4;
    }
    for (; left > 0; left--) {
      *patch = pair_of(*first++, *second++);
      patch += STEP;
    }
    first += turn;
    second += turn;
  }
}

#if defined(__XTENSA__) && defined(__XTENSA_EL__)
typedef struct {
  int32_t low, high; /* bounds of outputs */
  const uint32_t *stream, *end;
  int8_t *output;
  int32_t row; /* bytes from pixel to pixel of the output */
  int32_t two_sided;
  const word *patch;
  const int16_t *weights;
  int32_t right;
} tile_walk;

/* All channels of six pixels. In assembly of its own, for GCC has no functions without a frame on Xtensa; the same for both of
 * its calling conventions, of which one has register windows. */
#ifdef __cplusplus
extern "C"
#endif
    void
    tinyet_paired_6x1_xtensa(const tile_walk *walk);

#ifdef __XTENSA_WINDOWED_ABI__
#define ENTER "entry a1, 80\n"
#define LEAVE "retw\n"
#else
#define ENTER                \
  "addi a1, a1, -64\n"       \
  "s32i a12, a1, 48\n"       \
  "s32i a13, a1, 52\n"       \
  "s32i a14, a1, 56\n"       \
  "s32i a15, a1, 60\n"
#define LEAVE                \
  "l32i a12, a1, 48\n"       \
  "l32i a13, a1, 52\n"       \
  "l32i a14, a1, 56\n"       \
  "l32i a15, a1, 60\n"       \
  "addi a1, a1, 64\n"        \
  "ret\n"
#endif

/* The first tap of a run: its products are what the others are added to. */
#define FIRST                \
  "l32i a2, a13, 0\n"        \
  "l16si a12, a14, 2\n"      \
  "l32i a3, a13, 4\n"        \
  "l32i a4, a13, 8\n"        \
  "mull a2, a2, a12\n"       \
  "mull a3, a3, a12\n"       \
  "mull a4, a4, a12\n"
#define TAP(i)                        \
  "l32i a11, a13, 12*" #i "\n"        \
  "l16si a12, a14, 2+2*" #i "\n"      \
  "l32i a15, a13, 4+12*" #i "\n"      \
  "mull a11, a11, a12\n"              \
  "mull a15, a15, a12\n"              \
  "add a2, a2, a11\n"                 \
  "l32i a11, a13, 8+12*" #i "\n"      \
  "add a3, a3, a15\n"                 \
  "mull a11, a11, a12\n"              \
  "add a4, a4, a11\n"
/* What a run has added up to goes to the sums: of a pair the first holds 2^16 times the second, too. With 2^15 less, the lower
 * part takes one from the upper, always. Then where the next run's code begins. */
#define DRAIN(n)                      \
  "l16ui a11, a14, 2+2*" #n "\n"      \
  "l32r a12, .Ltinyet_paired_6x1_runs_at\n"     \
  "add a5, a5, a2\n"                  \
  "addmi a2, a2, -32768\n"            \
  "add a11, a11, a12\n"               \
  "l32i a11, a11, 0\n"                \
  "add a6, a6, a3\n"                  \
  "addmi a3, a3, -32768\n"            \
  "add a7, a7, a4\n"                  \
  "addmi a4, a4, -32768\n"            \
  "srai a2, a2, 16\n"                 \
  "srai a3, a3, 16\n"                 \
  "srai a4, a4, 16\n"                 \
  "add a8, a8, a2\n"                  \
  "add a9, a9, a3\n"                  \
  "add a10, a10, a4\n"                \
  "addi a13, a13, 12*" #n "\n"        \
  "addi a14, a14, 2+2*" #n "\n"       \
  "jx a11\n"
#define RUN(n, taps) ".Ltinyet_paired_6x1_" #n ":\n" FIRST taps DRAIN(n)

/* One output, of a sum below the limit in a4 by upper and lower in a11 and a12 and an offset in a13; of others a bound. The
 * factors of two-sided ones at a3, bytes from output to output in a2. */
#define SCALED(sum)                   \
  "mull a15, " sum ", a12\n"          \
  "mull " sum ", " sum ", a11\n"      \
  "srl a15, a15\n"                    \
  "add " sum ", " sum ", a13\n"       \
  "add " sum ", " sum ", a15\n"       \
  "extui " sum ", " sum ", 24, 8\n"
#define STORED(sum, at)               \
  "8:\n"                              \
  "s8i " sum ", " at ", 0\n"          \
  "add " at ", " at ", a2\n"
#define BOUND(sum)                    \
  "bltu " sum ", a4, 6f\n"            \
  "l32i a15, a1, 0\n"                 \
  "bltz " sum ", 7f\n"                \
  "l32i a15, a1, 4\n"                 \
  "7:\n"                              \
  "mov " sum ", a15\n"                \
  "j 8f\n"                            \
  "6:\n"
#define ONE_SIDED(sum) BOUND(sum) SCALED(sum) STORED(sum, "a3")
#define TWO_SIDED(sum)                \
  BOUND(sum)                          \
  "l32i a15, a3, 8\n"                 \
  "bgeu " sum ", a15, 6f\n"           \
  "l32i a15, a3, 12\n"                \
  "sub a13, a13, a15\n"               \
  SCALED(sum)                         \
  "l32i a13, a3, 28\n"                \
  "j 8f\n"                            \
  "6:\n" SCALED(sum) STORED(sum, "a14")
#define SIX(outputs) outputs("a5") outputs("a8") outputs("a6") outputs("a9") outputs("a7") outputs("a10")
#define COPIED(at) "l32i a4, a2, " #at "\n" "s32i a4, a1, " #at "\n"

/* On the stack what the walk has up to the patch. Runs in a2 ... a4, sums of pairs in a5 ... a7, of their second pixels in
 * a8 ... a10, inputs at a13, weights at a14; between channels their words of the stream at a3. */
__asm__(
    ".section .text.tinyet_paired_6x1_xtensa, \"ax\"\n"
    ".align 4\n"
    ".literal_position\n"
    ".literal .Ltinyet_paired_6x1_runs_at, tinyet_paired_6x1_runs\n"
    ".align 4\n"
    ".global tinyet_paired_6x1_xtensa\n"
    ".type tinyet_paired_6x1_xtensa, @function\n"
    "tinyet_paired_6x1_xtensa:\n" ENTER
    COPIED(0) COPIED(4) COPIED(8) COPIED(12) COPIED(16) COPIED(20) COPIED(24) COPIED(28)
    "l32i a14, a2, 32\n"
    "l32i a5, a2, 36\n"
    "ssr a5\n"
    "l32i a3, a1, 8\n"
    ".Ltinyet_paired_6x1_channel:\n"
    "l16ui a11, a14, 0\n"
    "l32r a12, .Ltinyet_paired_6x1_runs_at\n"
    "l32i a13, a1, 28\n"
    "add a11, a11, a12\n"
    "l32i a11, a11, 0\n"
    "l32i a5, a3, 0\n"
    "l32i a8, a3, 4\n"
    "mov a6, a5\n"
    "mov a7, a5\n"
    "mov a9, a8\n"
    "mov a10, a8\n"
    "jx a11\n"
    RUN(1, "")
    RUN(2, TAP(1))
    RUN(3, TAP(1) TAP(2))
    RUN(4, TAP(1) TAP(2) TAP(3))
    RUN(5, TAP(1) TAP(2) TAP(3) TAP(4))
    RUN(6, TAP(1) TAP(2) TAP(3) TAP(4) TAP(5))
    RUN(7, TAP(1) TAP(2) TAP(3) TAP(4) TAP(5) TAP(6))
    RUN(8, TAP(1) TAP(2) TAP(3) TAP(4) TAP(5) TAP(6) TAP(7))
    RUN(9, TAP(1) TAP(2) TAP(3) TAP(4) TAP(5) TAP(6) TAP(7) TAP(8))
    RUN(10, TAP(1) TAP(2) TAP(3) TAP(4) TAP(5) TAP(6) TAP(7) TAP(8) TAP(9))
    ".Ltinyet_paired_6x1_0:\n"
    "l32i a3, a1, 8\n"
    "l32i a15, a1, 24\n"
    "l32i a2, a1, 20\n"
    "addi a14, a14, 2\n"
    "slli a11, a8, 16\n"
    "slli a12, a9, 16\n"
    "slli a13, a10, 16\n"
    "sub a5, a5, a11\n"
    "sub a6, a6, a12\n"
    "sub a7, a7, a13\n"
    "bnez a15, .Ltinyet_paired_6x1_two_sided\n"
    "l32i a4, a3, 8\n"
    "l32i a11, a3, 12\n"
    "l32i a12, a3, 16\n"
    "l32i a13, a3, 20\n"
    "addi a15, a3, 24\n"
    "l32i a3, a1, 16\n"
    "s32i a15, a1, 8\n"
    "addi a15, a3, 1\n"
    "s32i a15, a1, 16\n" SIX(ONE_SIDED)
    "l32i a3, a1, 8\n"
    ".Ltinyet_paired_6x1_next:\n"
    "l32i a4, a1, 12\n"
    "beq a3, a4, 6f\n"
    "j .Ltinyet_paired_6x1_channel\n"
    "6:\n" LEAVE
    ".Ltinyet_paired_6x1_two_sided:\n"
    "s32i a14, a1, 32\n"
    "l32i a14, a1, 16\n"
    "l32i a4, a3, 16\n"
    "l32i a11, a3, 20\n"
    "l32i a12, a3, 24\n"
    "l32i a13, a3, 28\n"
    "addi a15, a14, 1\n"
    "s32i a15, a1, 16\n" SIX(TWO_SIDED)
    "l32i a14, a1, 32\n"
    "addi a3, a3, 32\n"
    "s32i a3, a1, 8\n"
    "j .Ltinyet_paired_6x1_next\n"
    ".size tinyet_paired_6x1_xtensa, . - tinyet_paired_6x1_xtensa\n"
    ".section .rodata.tinyet_paired_6x1_xtensa, \"a\"\n"
    ".align 4\n"
    ".type tinyet_paired_6x1_runs, @object\n"
    "tinyet_paired_6x1_runs:\n"
    ".word .Ltinyet_paired_6x1_0, .Ltinyet_paired_6x1_1, .Ltinyet_paired_6x1_2, .Ltinyet_paired_6x1_3\n"
    ".word .Ltinyet_paired_6x1_4, .Ltinyet_paired_6x1_5, .Ltinyet_paired_6x1_6, .Ltinyet_paired_6x1_7\n"
    ".word .Ltinyet_paired_6x1_8, .Ltinyet_paired_6x1_9, .Ltinyet_paired_6x1_10\n"
    ".size tinyet_paired_6x1_runs, . - tinyet_paired_6x1_runs\n"
    ".text\n");
#undef ENTER
#undef LEAVE
#undef FIRST
#undef TAP
#undef DRAIN
#undef RUN
#undef SCALED
#undef STORED
#undef BOUND
#undef ONE_SIDED
#undef TWO_SIDED
#undef SIX
#undef COPIED

static void outputs(const word *patch, int8_t *output, int32_t row,
                    const tinyet_conv2d_s8_paired_runs_6x1_params *params) {
  const tinyet_packed_words *const layer = &params->words;
  const int32_t words = layer->two_sided != 0 ? 8 : 6;
  const tile_walk walk = {layer->clamp_low, layer->clamp_high, layer->stream, layer->stream + words * layer->out_c,
                          output, row, layer->two_sided, patch, params->weights, layer->right};
  tinyet_paired_6x1_xtensa(&walk);
}
#else
static void outputs(const word *patch, int8_t *output, int32_t row,
                    const tinyet_conv2d_s8_paired_runs_6x1_params *params) {
  const tinyet_packed_words *const layer = &params->words;
  const TINYET_ROM uint32_t *f = layer->stream;
  const TINYET_ROM int16_t *weights = params->weights;
  const int8_t low = (int8_t)layer->clamp_low, high = (int8_t)layer->clamp_high;
  for (int32_t channel = 0; channel < layer->out_c; channel++) {
    const TINYET_ROM int16_t *behind = weights;
    for (int32_t pair = 0; pair < PIXELS / 2; pair++) {
      const word *x = patch + pair;
      uint32_t both = f[0], second = f[1];
      behind = weights;
      for (int32_t taps = *behind++; taps > 0; taps = *behind++) {
        uint32_t run = 0u;
        for (; taps > 0; taps -= 4, x += STEP) {
          const int32_t weight = *behind++;
          run += *x * (uint32_t)weight;
        }
        both += run;
        second += (uint32_t)((int32_t)(run - 0x8000u) >> 16);
      }
      int8_t *const out = output + 2 * pair * row + channel;
      out[0] = tinyet_two_products(both - (second << 16), f + 2, layer->right, layer->two_sided, low, high);
      out[row] = tinyet_two_products(second, f + 2, layer->right, layer->two_sided, low, high);
    }
    weights = behind;
    f += layer->two_sided != 0 ? 8 : 6;
  }
}
#endif

void tinyet_conv2d_s8_paired_runs_6x1(const int8_t *input, int8_t *output, void *scratch,
                                      const tinyet_conv2d_s8_paired_runs_6x1_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t taps = s->kernel_h * s->kernel_w * s->in_c, pixels = s->out_h * s->out_w, out_c = s->out_c;
  word *const patch = (word *)scratch;
  int8_t *const apart = (int8_t *)scratch + 4 * STEP * taps;
  /* The last place of a window that lies in the image; none where taps have gaps. */
  const int32_t lowest = s->dilation_h == 1 && s->dilation_w == 1 ? s->in_h - s->kernel_h : -1;
  const int32_t rightmost = s->in_w - s->kernel_w;
  memset(scratch, 0, (size_t)(4 * STEP * taps));
  for (int32_t n = 0; n < s->batch; n++) {
    int32_t row = 0, column = 0;
    for (int32_t pixel = 0; pixel < pixels; pixel += PIXELS) {
      const int32_t count = pixels - pixel < PIXELS ? pixels - pixel : (int32_t)PIXELS;
      for (int32_t i = 0; i < count; i += 2) {
        const int32_t top = row * s->stride_h - s->pad_top, left = column * s->stride_w - s->pad_left;
        if (++column == s->out_w) {
          column = 0, row++;
        }
        const int32_t next_top = row * s->stride_h - s->pad_top, next_left = column * s->stride_w - s->pad_left;
        if (i + 1 < count && ++column == s->out_w) {
          column = 0, row++;
        }
        if (top >= 0 && next_top <= lowest && left >= 0 && left <= rightmost && next_left >= 0 && next_left <= rightmost) {
          gather_two(patch + i / 2, input + (top * s->in_w + left) * s->in_c,
                     input + (next_top * s->in_w + next_left) * s->in_c, s);
        } else {
          gather(patch + i / 2, input, top, left, s, params->words.padding, 0);
          if (i + 1 < count) {
            gather(patch + i / 2, input, next_top, next_left, s, params->words.padding, 1);
          }
        }
      }
      if (count == PIXELS) {
        outputs(patch, output, out_c, params);
      } else {
        outputs(patch, apart, out_c, params);
        memcpy(output, apart, (size_t)(count * out_c));
      }
      output += count * out_c;
    }
    input += s->in_h * s->in_w * s->in_c;
  }
}
