/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_depthwise_planes.h"
#include "tinyet_one_product.h"

enum {
  FIELD = 21,
  ABOVE = 2 * FIELD - 32, /* by how much the third input is shifted in the second word */
  UNUSED = 32 - FIELD,    /* by how much a field is shifted to the upper end of a word: sums are multiplied by so much */
  SHIFT = 12
};

typedef uint32_t __attribute__((may_alias)) word;

/* How three bands of an image become words: each as many rows of outputs, the last ones in two bands if need be. */
typedef struct {
  int32_t first[3]; /* bytes from the image's first row to the first one of a band's plane */
  int32_t rows, width;
  int32_t columns; /* words from row to row of the plane */
  int32_t in_h, in_row, channels;
} bands;

/* What a channel's outputs are made of: as the assembly reads it. */
typedef struct {
  int32_t weights[9];
  int32_t start, multiplier;
  int8_t *output;
  int32_t second, third; /* bytes from an output of the first band to that of the others */
  int32_t step;          /* bytes from output to output */
  int32_t next;          /* bytes from the last input of two windows to the next two */
  int8_t *end;           /* of outputs of a row that are computed in twos */
  int32_t odd;           /* step where one is left: the last two are it and the one before once more */
  int32_t window;        /* bytes from window to window */
  int32_t turn;          /* bytes from the window behind the last one of a row to the first one of the next */
  int32_t rows;
  int32_t line;    /* bytes from row to row of outputs */
  int32_t columns; /* bytes from row to row of the plane */
  int32_t down;    /* bytes from the last input of two windows in a row to the first in the next row */
} outputs_of_bands;

static inline __attribute__((always_inline)) void put(word *to, int32_t a, int32_t b, int32_t c) {
  to[0] = (uint32_t)a + ((uint32_t)c << FIELD);
  to[1] = (uint32_t)b + ((uint32_t)c << ABOVE);
}

/* The words of a place in three rows, and onward to the next one. */
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2 && defined(__thumb__)
#define PUT()                                                                                               \
  do {                                                                                                      \
    uint32_t x, y, z;                                                                                       \
    __asm__ volatile(                                                                                       \
        "ldrsb %[x], [%[a], %[at]]\n"                                                                       \
        "ldrsb %[y], [%[b], %[at]]\n"                                                                       \
        "ldrsb %[z], [%[c], %[at]]\n"                                                                       \
        "add %[at], %[at], %[channels]\n"                                                                   \
        "add %[x], %[x], %[z], lsl #21\n"                                                                   \
        "add %[y], %[y], %[z], lsl #10\n"                                                                   \
        "strd %[x], %[y], [%[to]], #8\n"                                                                    \
        : [x] "=&r"(x), [y] "=&r"(y), [z] "=&r"(z), [at] "+&r"(at), [to] "+&r"(to)                          \
        : [a] "r"(a), [b] "r"(b), [c] "r"(c), [channels] "r"(channels)                                      \
        : "memory");                                                                                        \
  } while (0)
#else
#define PUT()                     \
  do {                            \
    put(to, a[at], b[at], c[at]); \
    at += channels;               \
    to += 2;                      \
  } while (0)
#endif

/* A band of the channel that begins at `image`; rows beside the image are those of `padding`. */
static __attribute__((noinline)) void pack(word *to, const int8_t *image, const int8_t *padding, const bands *of) {
  const int32_t channels = of->channels, in_row = of->in_row, size = of->in_h * in_row, gap = of->columns - 2 * of->width;
  int32_t first = of->first[0], second = of->first[1], third = of->first[2];
  for (int32_t rows = of->rows; rows > 0; rows--) {
    const int8_t *const a = first >= 0 && first < size ? image + first : padding;
    const int8_t *const b = second >= 0 && second < size ? image + second : padding;
    const int8_t *const c = third >= 0 && third < size ? image + third : padding;
    int32_t at = 0, left = of->width;
    for (; left >= 4; left -= 4) {
      PUT();
      PUT();
      PUT();
      PUT();
    }
    for (; left > 0; left--) {
      PUT();
    }
    to += gap;
    first += in_row, second += in_row, third += in_row;
  }
}
#undef PUT

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2 && defined(__thumb__)
/* What a row of inputs adds to two windows side by side, whose sums are r6 and r7, r8 and r9: weights in r3 ... r5, words at
 * r0. The first row of a window begins its sums. */
#define BEGIN(sum, x, w) "mul " sum ", " x ", " w "\n"
#define ADD(sum, x, w) "mla " sum ", " x ", " w ", " sum "\n"
#define FIRST_COLUMN(PRODUCT, sum, other, x, y) PRODUCT(sum, x, "r3") PRODUCT(other, y, "r3")
#define MIDDLE_COLUMN(sum, other, x, y) ADD(sum, x, "r4") ADD(other, y, "r4")
#define LAST_COLUMN(sum, other, x, y) ADD(sum, x, "r5") ADD(other, y, "r5")
#define WEIGHTS "ldm r1!, {r3, r4, r5}\n"
#define TWO_INPUTS "ldm r0!, {r10, r11, r12, lr}\n"
#define NEIGHBOURS(PRODUCT)                                     \
  WEIGHTS TWO_INPUTS                                            \
  FIRST_COLUMN(PRODUCT, "r6", "r7", "r10", "r11")               \
  FIRST_COLUMN(PRODUCT, "r8", "r9", "r12", "lr")                \
  MIDDLE_COLUMN("r6", "r7", "r12", "lr")                        \
  TWO_INPUTS                                                    \
  MIDDLE_COLUMN("r8", "r9", "r10", "r11")                       \
  LAST_COLUMN("r6", "r7", "r10", "r11")                         \
  LAST_COLUMN("r8", "r9", "r12", "lr")
/* The same of windows two inputs apart. */
#define APART(PRODUCT)                                          \
  WEIGHTS TWO_INPUTS                                            \
  FIRST_COLUMN(PRODUCT, "r6", "r7", "r10", "r11")               \
  MIDDLE_COLUMN("r6", "r7", "r12", "lr")                        \
  TWO_INPUTS                                                    \
  FIRST_COLUMN(PRODUCT, "r8", "r9", "r10", "r11")               \
  LAST_COLUMN("r6", "r7", "r10", "r11")                         \
  MIDDLE_COLUMN("r8", "r9", "r12", "lr")                        \
  "ldm r0!, {r10, r11}\n"                                       \
  LAST_COLUMN("r8", "r9", "r10", "r11")
#define DOWN "add r0, r0, r2\n"
#define ROUND(sum, to)                      \
  "smull lr, " sum ", " sum ", r4\n"        \
  "ssat " sum ", #8, " sum ", asr #12\n"    \
  "strb " sum ", " to "\n"
/* Sums of the three bands, each at the upper end of a word, but the third, which has one bit more: r12, and where they were. */
#define THREE(word, other)                          \
  "lsl r12, " word ", #11\n"                        \
  "sub " word ", " word ", r12, asr #11\n"          \
  "sub " word ", " other ", " word ", lsr #11\n"    \
  "lsl " word ", " word ", #11\n"                   \
  "sub " other ", " other ", " word ", asr #11\n"   \
  "add r12, r3, r12\n" ROUND("r12", "[r5]")         \
  "add " word ", r3, " word "\n" ROUND(word, "[r5, r10]") \
  "add " other ", r3, " other ", lsl #1\n" ROUND(other, "[r5, r11]")
/* Outputs at r5, in the walk while sums are made. */
#define ALL(ROW)                            \
  "1:\n"                                    \
  ROW(BEGIN) DOWN ROW(ADD) DOWN ROW(ADD)    \
  "ldr r10, [r1, #24]\n"                    \
  "add r0, r0, r10\n"                       \
  "ldm r1, {r3, r4, r5, r10, r11}\n"        \
  THREE("r6", "r7")                         \
  "ldr r6, [r1, #20]\n"                     \
  "add r5, r5, r6\n"                        \
  THREE("r8", "r9")                         \
  "add r5, r5, r6\n"                        \
  "str r5, [r1, #8]\n"                      \
  "ldr r7, [r1, #28]\n"                     \
  "sub r1, r1, #36\n"                       \
  "cmp r5, r7\n"                            \
  "blo.w 1b\n"                              \
  "ldr r6, [r1, #68]\n"                     \
  "cbz r6, 2f\n"                            \
  "cmp r5, r7\n"                            \
  "bne 2f\n"                                \
  "sub r5, r5, r6\n"                        \
  "str r5, [r1, #44]\n"                     \
  "ldr r6, [r1, #72]\n"                     \
  "sub r0, r0, r6\n"                        \
  "b.w 1b\n"                                \
  "2:\n"                                    \
  "ldrd r3, r4, [r1, #76]\n"                \
  "add r0, r0, r3\n"                        \
  "ldr r3, [r1, #84]\n"                     \
  "add r7, r7, r3\n"                        \
  "str r7, [r1, #64]\n"                     \
  "subs r4, r4, #1\n"                       \
  "str r4, [r1, #80]\n"                     \
  "bne.w 1b\n"                              \
  "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n"

__attribute__((naked, noinline)) static void neighbours(const word *plane __attribute__((unused)),
                                                        outputs_of_bands *walk __attribute__((unused))) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
      "ldr r2, [r1, #92]\n"
      ALL(NEIGHBOURS));
}

__attribute__((naked, noinline)) static void apart(const word *plane __attribute__((unused)),
                                                   outputs_of_bands *walk __attribute__((unused))) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
      "ldr r2, [r1, #92]\n"
      ALL(APART));
}
#undef BEGIN
#undef ADD
#undef FIRST_COLUMN
#undef MIDDLE_COLUMN
#undef LAST_COLUMN
#undef WEIGHTS
#undef TWO_INPUTS
#undef NEIGHBOURS
#undef APART
#undef DOWN
#undef ROUND
#undef THREE
#undef ALL

static void channel(const word *plane, outputs_of_bands *walk) {
  if (walk->window == 2 * (int32_t)sizeof(word)) {
    neighbours(plane, walk);
  } else {
    apart(plane, walk);
  }
}
#else
static inline int8_t output_of(int32_t sum, const outputs_of_bands *walk) {
  const uint32_t value = ((uint32_t)sum << UNUSED) + (uint32_t)walk->start;
  return (int8_t)tinyet_one_product((int32_t)value, walk->multiplier, 0, 0, SHIFT);
}

/* The lower bits of a word as a signed number. */
static inline int32_t field(uint32_t sums) { return (int32_t)(sums << UNUSED) >> UNUSED; }

static void channel(const word *plane, outputs_of_bands *walk) {
  const int32_t columns = walk->columns / (int32_t)sizeof(word), window = walk->window / (int32_t)sizeof(word);
  const word *x = plane;
  int8_t *to = walk->output;
  const int8_t *end = walk->end + walk->odd;
  for (int32_t y = walk->rows; y > 0; y--) {
    for (; to != end; to += walk->step) {
      uint32_t first = 0, second = 0;
      const word *row = x;
      for (int32_t i = 0; i < 9; i += 3) {
        for (int32_t j = 0; j < 3; j++) {
          first += row[2 * j] * (uint32_t)walk->weights[i + j];
          second += row[2 * j + 1] * (uint32_t)walk->weights[i + j];
        }
        row += columns;
      }
      const int32_t a = field(first), b = field(second - ((first - (uint32_t)a) >> UNUSED));
      const int32_t c = (int32_t)(second - (uint32_t)b) >> ABOVE;
      to[0] = output_of(a, walk);
      to[walk->second] = output_of(b, walk);
      to[walk->third] = output_of(c, walk);
      x += window;
    }
    x += walk->turn / (int32_t)sizeof(word);
    end += walk->line;
  }
}
#endif

void tinyet_depthwise_s8_chw_3x3_threes(const int8_t *input, int8_t *output, void *scratch,
                                        const tinyet_depthwise_s8_chw_3x3_threes_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t channels = s->in_c, line = s->out_w * channels, in_row = s->in_w * channels;
  const int32_t in_band = (s->out_h + 2) / 3, third = s->out_h - in_band, second = tinyet_least(in_band, third);
  const int32_t rows = (in_band - 1) * s->stride_h + 3, columns = 2 * ((s->out_w - 1) * s->stride_w + 3);
  const int32_t above = s->pad_top * in_row, in_rows = s->stride_h * in_row;
  const bands of = {{-above, second * in_rows - above, third * in_rows - above},
                    rows,
                    tinyet_least(s->in_w, columns / 2 - s->pad_left),
                    columns,
                    s->in_h,
                    in_row,
                    channels};
  word *const plane = (word *)scratch;
  int8_t *const padding = (int8_t *)(plane + rows * columns);
  const int32_t bytes = columns * (int32_t)sizeof(word), window = 2 * s->stride_w * (int32_t)sizeof(word);
  /* Words that two windows take of a row: four pairs, or five. */
  const int32_t seen = (s->stride_w + 3) * 2 * (int32_t)sizeof(word), odd = (s->out_w & 1) * channels;
  for (int32_t i = 0; i < rows * columns; i += 2) {
    put(plane + i, params->padding, params->padding, params->padding);
  }
  memset(padding, (int)params->padding, (size_t)in_row);
  outputs_of_bands walk = {{0},
                           0,
                           0,
                           output,
                           second * line,
                           third * line,
                           channels,
                           2 * window - 2 * bytes - seen,
                           output,
                           odd,
                           window,
                           s->stride_h * bytes - s->out_w * window,
                           in_band,
                           line,
                           bytes,
                           bytes - seen};
  for (int32_t n = 0; n < s->batch; n++) {
    const TINYET_ROM uint32_t *f = params->stream;
    const TINYET_ROM int8_t *weights = params->weights;
    for (int32_t c = 0; c < channels; c++) {
      pack(plane + 2 * s->pad_left, input + c, padding, &of);
      for (int32_t i = 0; i < 9; i++) {
        walk.weights[i] = weights[i];
      }
      walk.start = (int32_t)f[0];
      walk.multiplier = (int32_t)f[1];
      walk.output = output + c;
      walk.end = output + c + line - odd;
      walk.rows = in_band;
      channel(plane, &walk);
      f += 2;
      weights += 9;
    }
    tinyet_clamp_outputs(output, s->out_h * line, params->clamp_low, params->clamp_high);
    input += s->in_h * in_row;
    output += s->out_h * line;
  }
}
