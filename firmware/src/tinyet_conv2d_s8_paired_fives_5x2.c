/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_paired.h"
#include "tinyet_fives_body.h"
#include "tinyet_surround_body.h"

enum { PIXELS = 5, CHANNELS = 2, WORDS_BEHIND = 6 /* the weights of two channels */ };

/* What a window sees: so many rows of so many inputs that lie without gaps, and so many bytes from the end of a row to the next
 * one; as the assembly reads it. */
typedef struct {
  int32_t inputs, turn, rows;
} window_rows;

/* The words of five windows, which lie in the image. */
#ifdef IN_THUMB
#define TAP(at)                                                           \
  "ldrsb r6, [r1" at "\n" "ldrsb r7, [r2" at "\n" "ldrsb r8, [r3" at "\n" \
  "ldrsb r9, [r4" at "\n" "ldrsb r10, [r5" at "\n"                       \
  "add r6, r6, r9, lsl #19\n" "add r7, r7, r10, lsl #19\n"                \
  "add r8, r8, r9, lsl #6\n" "add r8, r8, r10, lsl #12\n"                 \
  "stm r0!, {r6, r7, r8}\n"
__attribute__((naked, noinline)) static void gather_rows(word *to __attribute__((unused)),
                                                         const int8_t *const from[PIXELS] __attribute__((unused)),
                                                         const window_rows *of __attribute__((unused))) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r3, r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
      "ldm r2, {r11, r12, lr}\n"
      "str r11, [sp]\n"
      "ldm r1, {r1, r2, r3, r4, r5}\n"
      "1:\n"
      "subs r11, r11, #4\n"
      "blt 3f\n"
      "2:\n"
      TAP("]") TAP(", #1]") TAP(", #2]") TAP(", #3]")
      "add r1, r1, #4\n" "add r2, r2, #4\n" "add r3, r3, #4\n" "add r4, r4, #4\n" "add r5, r5, #4\n"
      "subs r11, r11, #4\n"
      "bge.w 2b\n"
      "3:\n"
      "adds r11, r11, #4\n"
      "beq 5f\n"
      "4:\n"
      TAP("], #1")
      "subs r11, r11, #1\n"
      "bne 4b\n"
      "5:\n"
      "subs lr, lr, #1\n"
      "beq 6f\n"
      "add r1, r1, r12\n" "add r2, r2, r12\n" "add r3, r3, r12\n" "add r4, r4, r12\n" "add r5, r5, r12\n"
      "ldr r11, [sp]\n"
      "b 1b\n"
      "6:\n"
      "pop {r3, r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
}
#undef TAP
#else
static void gather_rows(word *to, const int8_t *const from[PIXELS], const window_rows *of) {
  int32_t at = 0;
  for (int32_t rows = of->rows; rows > 0; rows--, at += of->turn) {
    for (const int32_t end = at + of->inputs; at != end; at++) {
      const uint32_t fourth = (uint32_t)from[3][at], fifth = (uint32_t)from[4][at];
      to[0] = (uint32_t)from[0][at] + (fourth << FIELD);
      to[1] = (uint32_t)from[1][at] + (fifth << FIELD);
      to[2] = (uint32_t)from[2][at] + (fourth << FOURTH) + (fifth << FIFTH);
      to += STEP;
    }
  }
}
#endif

/* What a window sees: of each row what lies left of the image, in it, and right of it. */
static __attribute__((noinline)) void copy_window(int8_t *to, const int8_t *image, int32_t top, int32_t left,
                                                  const tinyet_conv2d_shape *s, int8_t padding) {
  const int32_t in_c = s->in_c, row = s->kernel_w * in_c, right = left + s->kernel_w - s->in_w;
  const int32_t before = left >= 0 ? 0 : -left < s->kernel_w ? -left * in_c : row;
  const int32_t behind = right <= 0 ? 0 : right < s->kernel_w ? right * in_c : row;
  const int32_t inside = row - before - behind;
  for (int32_t y = top; y < top + s->kernel_h; y++) {
    if (y < 0 || y >= s->in_h || inside <= 0) {
      memset(to, padding, (size_t)row);
    } else {
      memset(to, padding, (size_t)before);
      memcpy(to + before, image + (y * s->in_w + left) * in_c + before, (size_t)inside);
      memset(to + before + inside, padding, (size_t)behind);
    }
    to += row;
  }
}

/* Where the windows of the next pixels begin. */
typedef struct {
  int32_t row, column;
} window_walk;

/* What the next `count` pixels see; where there are fewer than five, the last is the others, too. `windows` has room for five
 * windows. */
static __attribute__((noinline)) void gather_five(word *patch, int8_t *windows, const int8_t *image, int32_t count,
                                                  window_walk *walk, const tinyet_conv2d_shape *s, int8_t padding) {
  const int32_t row = s->kernel_w * s->in_c, line = s->in_w * s->in_c, taps = s->kernel_h * row, step = s->stride_w;
  const int32_t top = walk->row * s->stride_h - s->pad_top, left = walk->column * step - s->pad_left;
  const int32_t lowest = s->in_h - s->kernel_h, rightmost = s->in_w - s->kernel_w;
  const int8_t *from[PIXELS];
  if (count == PIXELS && walk->column + PIXELS <= s->out_w &&
      (top | left | (lowest - top) | (rightmost - left - (PIXELS - 1) * step)) >= 0) {
    /* Of one row, and all in the image. */
    const int8_t *at = image + top * line + left * s->in_c;
    for (int32_t k = 0; k < PIXELS; k++) {
      from[k] = at;
      at += step * s->in_c;
    }
    walk->column += PIXELS;
    if (walk->column == s->out_w) {
      walk->column = 0, walk->row++;
    }
    const window_rows of = {row, line - row, s->kernel_h};
    gather_rows(patch, from, &of);
    return;
  }
  for (int32_t k = 0; k < PIXELS; k++) {
    from[k] = windows;
    if (k < count) {
      copy_window(windows, image, walk->row * s->stride_h - s->pad_top, walk->column * step - s->pad_left, s, padding);
      windows += taps;
      if (++walk->column == s->out_w) {
        walk->column = 0, walk->row++;
      }
    } else {
      from[k] = from[k - 1];
    }
  }
  const window_rows of = {taps, 0, 1};
  gather_rows(patch, from, &of);
}

/* The same of pixels that are all that a window sees, one behind the other. */
static inline __attribute__((always_inline)) void gather_pixels(word *patch, const int8_t *pixel, int32_t count, int32_t taps) {
  const int32_t last = (count - 1) * taps;
  const int8_t *const from[PIXELS] = {pixel, pixel + (count > 1 ? taps : last), pixel + (count > 2 ? 2 * taps : last),
                                      pixel + (count > 3 ? 3 * taps : last), pixel + last};
  const window_rows of = {taps, 0, 1};
  gather_rows(patch, from, &of);
}

#ifdef IN_THUMB
/* What the assembly has on the stack: the sums' words before the first product, where the inputs of a part end, the patch, where
 * the part's first turn enters the straight code, the output, bytes from pixel to pixel, the end of the stream; where the inputs
 * of a second part end, the weights of what its first turn does not execute, and where it enters; those of the first part's, and
 * the stream. */
typedef struct {
  uint32_t sums[2 * STEP];
  const word *end, *patch;
  int32_t skip; /* bytes of the straight code that the first turn does not execute */
  int8_t *output;
  int32_t row;
  const uint32_t *stream_end;
  const word *second_end;
  int32_t second_back, second_skip, back;
  const uint32_t *stream;
} tile_walk;

enum { TURN = 16, TAP_BYTES = 44 };
/* Five loads that overlap. One that moves its base on would not, nor would LDM: a turn moves both bases once, and begins so much
 * before words and weights as it skips. */
#define TAP(second, first)                                                                      \
  "ldrsb r12, [r1, #" second "]\n" "ldrsb r11, [r1, #" first "]\n"                              \
  "ldr r8, [r0, #6*" first "]\n" "ldr r9, [r0, #6*" first "+4]\n"                               \
  "ldr r10, [r0, #6*" first "+8]\n"                                                             \
  "mla r2, r8, r11, r2\n" "mla r3, r9, r11, r3\n" "mla r4, r10, r11, r4\n"                      \
  "mla r5, r8, r12, r5\n" "mla r6, r9, r12, r6\n" "mla r7, r10, r12, r7\n"
#define TAPS                                                                                    \
  TAP("1", "0") TAP("3", "2") TAP("5", "4") TAP("7", "6")                                       \
  TAP("9", "8") TAP("11", "10") TAP("13", "12") TAP("15", "14")                                 \
  TAP("17", "16") TAP("19", "18") TAP("21", "20") TAP("23", "22")                               \
  TAP("25", "24") TAP("27", "26") TAP("29", "28") TAP("31", "30")
/* The walk, of which r1 becomes the stream. */
#define ENTRY                                                                                   \
  ".syntax unified\n"                                                                           \
  "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"                                               \
  "sub sp, sp, #100\n"                                                                          \
  "ldm r0!, {r2, r3, r4, r5, r6, r7}\n"                                                         \
  "stm sp, {r2, r3, r4, r5, r6, r7}\n"                                                          \
  "ldm r0, {r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12}\n"                                   \
  "sub r1, r12, r11\n" "sub r7, r7, r11\n"                                                      \
  "sub r3, r3, r11, lsl #2\n" "sub r3, r3, r11, lsl #1\n"                                       \
  "adr.w r12, 2f+1\n"                                                                           \
  "add r4, r4, r12\n" "add r10, r10, r12\n"                                                     \
  "add r12, sp, #24\n"                                                                          \
  "stm r12, {r2, r3, r4, r5, r6, r7, r8, r9, r10, r11}\n"                                       \
  "1:\n"                                                                                        \
  "ldm sp, {r2, r3, r4, r5, r6, r7}\n"                                                          \
  "ldrd lr, r0, [sp, #24]\n"                                                                    \
  "ldr pc, [sp, #32]\n"                                                                         \
  ".balign 4\n"                                                                                 \
  "2:\n"                                                                                        \
  TAPS                                                                                          \
  "add r1, r1, #32\n" "add r0, r0, #192\n"                                                      \
  "cmp r0, lr\n"                                                                                \
  "bne.w 2b\n"
/* Weights of an odd number of taps end at half a word. */
#define BEHIND_TAPS "add r1, r1, #3\n" "bic r1, r1, #3\n" "ldrd r12, lr, [sp, #36]\n"
#define RETURN                                                                                  \
  "str r12, [sp, #36]\n"                                                                        \
  "ldr r11, [sp, #44]\n" "ldr r8, [sp, #60]\n"                                                  \
  "sub r1, r1, r8\n"                                                                            \
  "cmp r1, r11\n"                                                                               \
  "bne.w 1b\n"                                                                                  \
  "add sp, sp, #100\n"                                                                          \
  "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n"
/* What makes outputs of a channel's sums: r8, what is added, and r9; they are at r12, lr from pixel to pixel. */
#define CHANNEL "ldm r1!, {r8, r9, r11}\n" "add r12, r12, r11\n"
#define ROUND(sum, to)                                                                          \
  "smull r11, " sum ", " sum ", r9\n"                                                           \
  "ssat " sum ", #8, " sum ", asr #12\n"                                                        \
  "strb " sum ", " to "\n"
#define FIVE_OUTPUTS(first, second, third)                                                      \
  "add r8, r12, lr\n"                                                                           \
  ROUND(first, "[r12]") ROUND(second, "[r12, lr]") ROUND(third, "[r12, lr, lsl #1]")            \
  ROUND("r0", "[r8, lr, lsl #1]") ROUND("r10", "[r12, lr, lsl #2]")
/* The sum that has the lowest field of a word, times 2^12 and with what is added. */
#define WHOLE(sum) "lsl " sum ", " sum ", #13\n" "add " sum ", r8, " sum ", lsr #1\n"
#define OUTPUTS(first, second, third)                                                           \
  CHANNEL                                                                                       \
  "lsr r0, " first ", #19\n" "lsr r10, " second ", #19\n"                                       \
  "sub " third ", " third ", r0, lsl #6\n" "sub " third ", " third ", r10, lsl #12\n"           \
  WHOLE(first) WHOLE(second)                                                                    \
  "add r0, r8, r0, lsl #12\n" "ubfx r11, " third ", #19, #6\n" "add r0, r0, r11, lsl #25\n"     \
  "add r10, r8, r10, lsl #12\n" "lsr r11, " third ", #25\n" "add r10, r10, r11, lsl #25\n"      \
  WHOLE(third)                                                                                  \
  FIVE_OUTPUTS(first, second, third)
/* The same of sums of two parts, times 2^11: words of one in r2 ... r4, of the other in r5 ... r7. */
#define SUM_OF_TWO(sum, other)                                                                  \
  "lsl " sum ", " sum ", #13\n" "lsl " other ", " other ", #13\n"                               \
  "add " sum ", r8, " sum ", lsr #2\n" "add " sum ", " sum ", " other ", lsr #2\n"
#define LOWER(sum, word, other, by)                                                             \
  "lsr " sum ", " word ", #19\n" "lsr r11, " other ", #19\n"                                    \
  "sub r4, r4, " sum ", lsl #" by "\n" "sub r7, r7, r11, lsl #" by "\n"                         \
  "add " sum ", " sum ", r11\n"
#define UPPER(sum, FROM)                                                                        \
  "add " sum ", r8, " sum ", lsl #11\n"                                                         \
  FROM("r4") "add " sum ", " sum ", r11, lsl #24\n" FROM("r7") "add " sum ", " sum ", r11, lsl #24\n"
#define FOURTH_OF(word) "ubfx r11, " word ", #19, #6\n"
#define FIFTH_OF(word) "lsr r11, " word ", #25\n"
#define OUTPUTS_OF_TWO                                                                          \
  CHANNEL                                                                                       \
  LOWER("r0", "r2", "r5", "6") LOWER("r10", "r3", "r6", "12")                                   \
  SUM_OF_TWO("r2", "r5") SUM_OF_TWO("r3", "r6")                                                 \
  UPPER("r0", FOURTH_OF) UPPER("r10", FIFTH_OF)                                                 \
  SUM_OF_TWO("r4", "r7")                                                                        \
  FIVE_OUTPUTS("r2", "r3", "r4")

/* Channels of five pixels. Words at r0, the stream at r1, sums of two channels in r2 ... r4 and r5 ... r7. */
__attribute__((naked, noinline)) static void five_pixels(const tile_walk *walk __attribute__((unused))) {
  __asm__ volatile(
      ENTRY
      BEHIND_TAPS
      OUTPUTS("r2", "r3", "r4")
      OUTPUTS("r5", "r6", "r7")
      RETURN);
}

/* The same of channels with two parts. On the stack, 64, words of the first part; behind them those of the second channel of the
 * second part. */
__attribute__((naked, noinline)) static void five_pixels_in_parts(const tile_walk *walk __attribute__((unused))) {
  __asm__ volatile(
      ENTRY
      "ldrd r8, r10, [sp, #48]\n"
      "add r9, sp, #64\n"
      "cmp r8, lr\n"
      "beq 3f\n"
      "stm r9, {r2, r3, r4, r5, r6, r7}\n"
      "mov lr, r8\n"
      "sub r1, r1, r10\n" "sub r0, r0, r10, lsl #2\n" "sub r0, r0, r10, lsl #1\n"
      "ldm sp, {r2, r3, r4, r5, r6, r7}\n"
      "ldr pc, [sp, #56]\n"
      "3:\n"
      "add r8, sp, #88\n"
      "stm r8, {r5, r6, r7}\n"
      "ldm r9, {r5, r6, r7}\n"
      BEHIND_TAPS
      OUTPUTS_OF_TWO
      "add r8, sp, #76\n"
      "ldm r8, {r2, r3, r4, r5, r6, r7}\n"
      OUTPUTS_OF_TWO
      RETURN);
}
#undef TAP
#undef TAPS
#undef ENTRY
#undef BEHIND_TAPS
#undef RETURN
#undef CHANNEL
#undef ROUND
#undef FIVE_OUTPUTS
#undef WHOLE
#undef OUTPUTS
#undef SUM_OF_TWO
#undef LOWER
#undef UPPER
#undef FOURTH_OF
#undef FIFTH_OF
#undef OUTPUTS_OF_TWO

/* Of channels of one part, and of two. */
typedef struct {
  tile_walk whole, divided;
} tiles;

static tiles tiles_of(const word *patch, int32_t taps, const tinyet_conv2d_s8_paired_fives_5x2_params *params) {
  const int32_t out_c = params->shape.out_c, words = (taps + 1) / 2 + WORDS_BEHIND, split = params->split;
  const uint32_t *const divided = params->stream + params->whole / CHANNELS * words;
  const tile_walk whole = {{FIRST_SUM, FIRST_SUM, THIRD_SUM, FIRST_SUM, FIRST_SUM, THIRD_SUM},
                           patch + STEP * taps,
                           patch,
                           (-taps & (TURN - 1)) * TAP_BYTES,
                           NULL,
                           out_c,
                           divided,
                           patch + STEP * taps,
                           CHANNELS * (-(taps - split) & (TURN - 1)),
                           (-(taps - split) & (TURN - 1)) * TAP_BYTES,
                           CHANNELS * (-taps & (TURN - 1)),
                           params->stream};
  tiles both = {whole, whole};
  both.divided.end = patch + STEP * split;
  both.divided.skip = (-split & (TURN - 1)) * TAP_BYTES;
  both.divided.back = CHANNELS * (-split & (TURN - 1));
  both.divided.stream = divided;
  both.divided.stream_end = params->stream + out_c / CHANNELS * words;
  return both;
}

static void outputs(tiles *of, int8_t *output, const tinyet_conv2d_s8_paired_fives_5x2_params *params) {
  if (params->whole > 0) {
    of->whole.output = output;
    five_pixels(&of->whole);
  }
  if (params->whole < params->shape.out_c) {
    of->divided.output = output;
    five_pixels_in_parts(&of->divided);
  }
}
#else
/* Of one channel: words of inputs at x, every second one of the weights from the first tap on. */
static void add_part(uint32_t sums[PIXELS], const word *patch, const TINYET_ROM uint32_t *weights, int32_t channel,
                     int32_t from, int32_t to) {
  const uint32_t mask = (UINT32_C(1) << FIELD) - 1u;
  uint32_t first = FIRST_SUM, second = FIRST_SUM, third = THIRD_SUM;
  for (int32_t tap = from; tap < to; tap++) {
    const word *const x = patch + STEP * tap;
    const uint32_t byte = (weights[tap / 2] >> 8 * (2 * (tap & 1) + channel)) & 255u, weight = (byte ^ 128u) - 128u;
    first += x[0] * weight;
    second += x[1] * weight;
    third += x[2] * weight;
  }
  const uint32_t fourth = first >> FIELD, fifth = second >> FIELD;
  third -= (fourth << FOURTH) + (fifth << FIFTH);
  sums[0] += first & mask;
  sums[1] += second & mask;
  sums[2] += third & mask;
  sums[3] += fourth + (((third >> FIELD) & 63u) << (32 - FIELD));
  sums[4] += fifth + ((third >> (FIELD + FOURTH)) << (32 - FIELD));
}

typedef struct {
  const word *patch;
  int32_t taps;
} tiles;

static tiles tiles_of(const word *patch, int32_t taps, const tinyet_conv2d_s8_paired_fives_5x2_params *params) {
  const tiles of = {patch, taps};
  (void)params;
  return of;
}

static void outputs(const tiles *of, int8_t *output, const tinyet_conv2d_s8_paired_fives_5x2_params *params) {
  const TINYET_ROM uint32_t *stream = params->stream;
  const word *const patch = of->patch;
  const int32_t out_c = params->shape.out_c, taps = of->taps, words = (taps + 1) / 2;
  int8_t *to = output;
  for (int32_t channel = 0; channel < out_c; channel++) {
    const int32_t of_pair = channel & 1, whole = channel < params->whole;
    const TINYET_ROM uint32_t *const rounding = stream + words + WORDS_BEHIND / CHANNELS * of_pair;
    uint32_t sums[PIXELS] = {0};
    if (whole != 0) {
      add_part(sums, patch, stream, of_pair, 0, taps);
    } else {
      add_part(sums, patch, stream, of_pair, 0, params->split);
      add_part(sums, patch, stream, of_pair, params->split, taps);
    }
    to = (channel == params->whole ? output : to) + (int32_t)rounding[2];
    for (int32_t i = 0; i < PIXELS; i++) {
      const uint32_t sum = (sums[i] << (whole != 0 ? BEFORE : BEFORE - 1)) + rounding[0];
      const int32_t value = tinyet_upper_half((int32_t)sum, (int32_t)rounding[1]) >> SHIFT;
      to[i * out_c] = (int8_t)(value < -128 ? -128 : value > 127 ? 127 : value);
    }
    if (of_pair != 0) {
      stream += words + WORDS_BEHIND;
    }
  }
}
#endif

void tinyet_conv2d_s8_paired_fives_5x2(const int8_t *input, int8_t *output, void *scratch,
                                       const tinyet_conv2d_s8_paired_fives_5x2_params *params) {
  tinyet_conv2d_shape s = params->shape;
  const int32_t taps = s.kernel_h * s.kernel_w * s.in_c, pixels = s.out_h * s.out_w, out_c = s.out_c;
  const int32_t size = s.in_h * s.in_w * s.in_c;
  word *const patch = (word *)scratch;
  int8_t *const apart = (int8_t *)(patch + STEP * taps), *const windows = apart + PIXELS * out_c;
  int8_t *const padded = windows + PIXELS * taps;
  if (params->padded_h != 0) {
    s.in_h = params->padded_h, s.in_w = params->padded_w;
    s.pad_top = 0, s.pad_left = 0;
  }
  const int32_t one_tap = taps == s.in_c && s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 && s.pad_left == 0 &&
                          s.out_h == s.in_h && s.out_w == s.in_w;
  tiles of = tiles_of(patch, taps, params);
  for (int32_t n = 0; n < s.batch; n++) {
    const int8_t *image = input;
    if (params->padded_h != 0) {
      surround(padded, input, &params->shape, &s, (int8_t)params->padding);
      image = padded;
    }
    window_walk walk = {0, 0};
    for (int32_t pixel = 0; pixel < pixels; pixel += PIXELS) {
      const int32_t count = pixels - pixel < PIXELS ? pixels - pixel : (int32_t)PIXELS;
      if (one_tap) {
        gather_pixels(patch, image + pixel * taps, count, taps);
      } else {
        gather_five(patch, windows, image, count, &walk, &s, (int8_t)params->padding);
      }
      if (count == PIXELS) {
        outputs(&of, output, params);
      } else {
        outputs(&of, apart, params);
        memcpy(output, apart, (size_t)(count * out_c));
      }
      tinyet_clamp_outputs(output, count * out_c, params->clamp_low, params->clamp_high);
      output += count * out_c;
    }
    input += size;
  }
}
